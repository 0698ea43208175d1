// SPDX-License-Identifier: Apache-2.0
// The options --timeout and --max-memory, for models that are not trusted.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"

namespace backplane::tools {

struct Limits {
  std::string timeout, memory;  // as on the command line; empty: no limit

  void declare(cli::Command command);
  // Applies the limits. Throws Usage if a value is not a valid duration or size.
  void start() const;

 private:
  void start_clock() const;
};

// Sets the function that prints the error when the time limit is exceeded. It is called on a thread of its own; then
// the process ends with exit status 1.
void report_timeout_by(std::function<void(const std::string& text)> print);
// The text of the error for exhausted memory.
std::string no_memory_text();

}  // namespace backplane::tools
