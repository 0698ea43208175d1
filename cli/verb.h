// SPDX-License-Identifier: Apache-2.0
// A command of a program. Each is defined in the file of the same name, as `extern const cli::Verb<…> <file>_verb`, and
// listed in the program's CMakeLists.txt.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::cli {

template <class Outcome>
struct Verb {
  const char* name;
  const char* does;  // the line in the help; empty: the command is hidden
  // Declares the options. Returns the function that runs the command after parsing.
  std::function<Outcome()> (*declare)(Command command);
};

}  // namespace backplane::cli
