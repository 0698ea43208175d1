// SPDX-License-Identifier: Apache-2.0
// Starts a program of this project from within a framework's process.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace backplane::isolate {

struct Program {
  std::filesystem::path file;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
};

// Starts the program with `descriptors[i]` as its descriptor 3 + i, `input` (/dev/null if -1) as its standard input,
// /dev/null as its output and error output, and no other descriptor. No signal is blocked or ignored in it, and it
// leads a process group. BP_PERMISSION_DENIED or BP_UNSUPPORTED if it cannot be started.
Result<pid_t> spawn(const Program& program, const std::vector<int>& descriptors, int input = -1);

}  // namespace backplane::isolate
