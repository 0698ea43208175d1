// SPDX-License-Identifier: Apache-2.0
// Starts a program of this project from a framework's process.
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

// Starts the program. Its descriptor 3 + i is `descriptors[i]`, its standard input is `input` (/dev/null if -1), and
// its output and error output are /dev/null. It inherits no other descriptors, starts with no signals blocked or
// ignored, and leads its own process group. BP_PERMISSION_DENIED or BP_UNSUPPORTED if it cannot be started.
Result<pid_t> spawn(const Program& program, const std::vector<int>& descriptors, int input = -1);

}  // namespace backplane::isolate
