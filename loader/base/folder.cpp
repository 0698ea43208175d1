// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace backplane {
namespace {

struct Close {
  void operator()(DIR* folder) const { closedir(folder); }
};

}  // namespace

std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& out_error) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  errno = open ? 0 : errno;
  while (const dirent* entry = open ? readdir(open.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  out_error = std::error_code(errno, std::generic_category());
  if (out_error) return {};
  std::ranges::sort(names);
  return names;
}

}  // namespace backplane
