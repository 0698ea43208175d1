// SPDX-License-Identifier: Apache-2.0
// A program's commands and options as data, from which shell completions and the manual page are generated.
#pragma once

#include <string>
#include <vector>

namespace backplane::cli {

struct OptionWords {
  std::string name;  // "--device"; a positional argument has no dashes
  std::string help;
  std::vector<std::string> choices;  // the only allowed values; empty: any value
  bool is_flag = false;              // takes no value
  bool may_be_file = false;          // whether the value may be the name of a file
  bool is_positional = false;
};

struct CommandWords {
  std::string name, help;
  std::vector<OptionWords> options;  // without hidden ones
  std::vector<CommandWords> commands;
};

}  // namespace backplane::cli
