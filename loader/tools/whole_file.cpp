// SPDX-License-Identifier: Apache-2.0
#include "whole_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "command.h"

namespace backplane::tools {

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw Failure(fmt::format("'{}' is a folder, not a file", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(fmt::format("'{}' cannot be opened: {}", path.string(), std::strerror(errno)));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) throw Failure(fmt::format("'{}' cannot be written: {}", path.string(), std::strerror(errno)));
}

}  // namespace backplane::tools
