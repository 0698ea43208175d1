// SPDX-License-Identifier: Apache-2.0
#include "checks/case.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;

void collect(const fs::path& data, const fs::path& folder, int depth, std::vector<Case>& cases) {
  std::error_code ignored;
  if (fs::is_regular_file(folder / "model.onnx", ignored)) {
    cases.push_back({.name = name_in(data, folder), .argument = folder.string()});
    return;
  }
  if (depth == kMaxDepth) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) collect(data, entry.path(), depth + 1, cases);
  }
}

}  // namespace

std::string name_in(const fs::path& data, const fs::path& folder) {
  if (folder == data) {
    const fs::path whole = fs::absolute(folder).lexically_normal();  // ends in '/' if `folder` ends in '/' or "."
    return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  }
  return folder.lexically_relative(data).string();
}

std::vector<Case> find_cases(const fs::path& data) {
  std::vector<Case> cases;
  collect(data, data, 0, cases);
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

std::vector<Case> filter(std::vector<Case> cases, const std::string& glob) {
  if (glob.size() > kMaxGlob)
    throw Usage(fmt::format("--filter has {} bytes: it may have at most {}", glob.size(), kMaxGlob));
  std::erase_if(cases, [&](const Case& one) {
    const std::string last = fs::path(one.name).filename().string();
    return fnmatch(glob.c_str(), one.name.c_str(), 0) != 0 && fnmatch(glob.c_str(), last.c_str(), 0) != 0;
  });
  return cases;
}

std::vector<Case> select(std::vector<Case> cases, Shard shard) {
  std::erase_if(cases, [&](const Case& one) { return !is_in(one.name, shard); });
  return cases;
}

}  // namespace backplane::conform
