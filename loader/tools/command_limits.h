// SPDX-License-Identifier: Apache-2.0
// --timeout and --max-memory, for models that are not trusted.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"

namespace backplane::tools {

struct Limits {
  std::string timeout, memory;  // as written on the command line; empty: none

  void declare(cli::Command command);
  // Applies the limits. Throws Usage if a value is not a duration or a size.
  void start() const;

 private:
  void start_clock() const;
};

// Sets the function that prints an error when the time is over; the process then ends with exit status 1.
void report_timeout_by(std::function<void(const std::string& text)> print);
// The error for exhausted memory.
std::string no_memory_text();

}  // namespace backplane::tools
