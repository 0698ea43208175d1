// SPDX-License-Identifier: Apache-2.0
// The words that a program understands, for what is written from them: completion of shells, and the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane::cli {

struct OptionWords {
  std::string name;  // "--device"; an argument by its position has none of the dashes
  std::string help;
  std::vector<std::string> choices;  // where only these are allowed
  bool is_flag = false;              // takes no value
  bool is_positional = false;
};

struct CommandWords {
  std::string name, help;
  std::vector<OptionWords> options;  // without hidden ones
  std::vector<CommandWords> commands;
};

// A script for a shell: bash, zsh or fish. Empty for any other.
std::string completion(const CommandWords& program, std::string_view shell);

// A manual page of section 1, as troff with the man macros. `footer` is about the exit status.
std::string manual_page(const CommandWords& program, std::string_view version, std::string_view footer);

}  // namespace backplane::cli
