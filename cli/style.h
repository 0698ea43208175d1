// SPDX-License-Identifier: Apache-2.0
// Colors and bold text, on terminals only.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace backplane::cli {

bool is_terminal(std::FILE* file);
// Whether `file` is a terminal that should show colors. False if NO_COLOR is set and not empty (no-color.org), or if
// TERM is "dumb" or not set.
bool has_color(std::FILE* file);

// Makes the headings of a report bold. A heading is a line without indentation that is followed by an indented line.
// The text must be printable already.
std::string emphasize(std::string_view text);
// Makes the program's name red, for the beginning of an error.
std::string in_red(std::string_view text);

}  // namespace backplane::cli
