// SPDX-License-Identifier: Apache-2.0
// A command of a program. Each is defined in the file of its name, as `extern const cli::Verb<…> <file>_verb`, and
// listed once, in the program's CMakeLists.txt.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::cli {

template <class Outcome>
struct Verb {
  const char* name;
  const char* does;  // its line in the help; empty for a command that the help does not show
  // Declares the options and returns what runs the command once they are parsed.
  std::function<Outcome()> (*declare)(Command command);
};

}  // namespace backplane::cli
