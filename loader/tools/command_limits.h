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
  // From now on. Throws Usage where a value is no duration or size.
  void start() const;

 private:
  void start_clock() const;
};

// Set by the program: prints an error when the time is over. The process then ends with exit status 1, whatever it
// does.
void report_timeout_by(std::function<void(const std::string& text)> print);
// What a command reports where memory is exhausted.
std::string no_memory_text();

}  // namespace backplane::tools
