// SPDX-License-Identifier: Apache-2.0
#include "cli/overwrite.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "cli/usage.h"

namespace backplane::cli {

void keep_inputs(std::string_view option, const std::filesystem::path& output, const std::vector<std::string>& inputs) {
  struct stat written = {}, read = {};
  if (stat(output.c_str(), &written) != 0 || !S_ISREG(written.st_mode)) return;
  for (const std::string& input : inputs) {
    if (stat(input.c_str(), &read) != 0 || read.st_dev != written.st_dev || read.st_ino != written.st_ino) continue;
    throw Usage(fmt::format("{} would overwrite '{}', which the command reads: name another file", option,
                            input == output.string() ? input : output.string() + "', the same file as '" + input));
  }
}

std::vector<std::string> mapped_files() {
  std::vector<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');  // address, permissions, offset, device and inode have none
    if (path == std::string::npos || (!files.empty() && files.back() == line.substr(path))) continue;
    files.push_back(line.substr(path));
  }
  return files;
}

}  // namespace backplane::cli
