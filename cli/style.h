// SPDX-License-Identifier: Apache-2.0
// Colours, on terminals only.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace backplane::cli {

bool is_terminal(std::FILE* file);
// A terminal, unless NO_COLOR is set (no-color.org), or TERM is "dumb" or not set.
bool has_colour(std::FILE* file);

// A report with its headings in bold: lines without indentation that an indented line follows. The text must be
// printable already.
std::string emphasise(std::string_view text);
// For the program's name in front of an error.
std::string in_red(std::string_view text);

}  // namespace backplane::cli
