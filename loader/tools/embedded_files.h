// SPDX-License-Identifier: Apache-2.0
// Files of the source tree that are built into the program (embedded_files.cpp.in, by CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace backplane::tools {

struct EmbeddedFile {
  std::string_view name;  // without folder
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

// The embedded file of that name, which must exist.
std::string_view embedded_file(std::string_view name);

}  // namespace backplane::tools
