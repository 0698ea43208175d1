// SPDX-License-Identifier: Apache-2.0
// Source files that are built into the program (embedded_files.cpp.in, filled in by CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace backplane::tools {

struct EmbeddedFile {
  std::string_view name;  // without folder
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

// The text of the embedded file `name`, which must exist.
std::string_view embedded_file(std::string_view name);

}  // namespace backplane::tools
