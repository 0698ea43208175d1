// SPDX-License-Identifier: Apache-2.0
#include "cli/style.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace backplane::cli {

bool is_terminal(std::FILE* file) {
  return isatty(fileno(file)) != 0;
}

bool has_color(std::FILE* file) {
  const char* none = secure_getenv("NO_COLOR");
  const char* terminal = secure_getenv("TERM");
  return is_terminal(file) && (none == nullptr || *none == 0) && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

std::string emphasize(std::string_view text) {
  const auto is_indented = [](std::string_view line) { return line.starts_with("  "); };
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_heading = !line.empty() && !is_indented(line) && is_indented(text);
    result += is_heading ? fmt::format("\033[1m{}\033[0m\n", line) : fmt::format("{}\n", line);
  }
  return result;
}

std::string in_red(std::string_view text) {
  return fmt::format("\033[31m{}\033[0m", text);
}

}  // namespace backplane::cli
