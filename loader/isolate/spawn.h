// SPDX-License-Identifier: Apache-2.0
// Starting a program of ours from within a framework's process.
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

// The program gets `descriptors[i]` as its number 3 + i, `input` as its standard input and /dev/null for its output,
// for errors and for an input of -1, and nothing else; no signal is blocked or ignored, and it leads a process group.
// BP_PERMISSION_DENIED or BP_UNSUPPORTED where it cannot be started.
Result<pid_t> spawn(const Program& program, const std::vector<int>& descriptors, int input = -1);

}  // namespace backplane::isolate
