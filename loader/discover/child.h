// SPDX-License-Identifier: Apache-2.0
// Runs a helper program and returns its report. Because the framework owns this process, the code avoids a bare fork, a
// SIGCHLD handler, waitpid(-1) and inherited descriptors.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace backplane {

// The program's descriptors, in addition to standard input, on which it receives ChildSetup::input.
inline constexpr int kChildReport = 3;  // the program writes its report here
inline constexpr int kChildFile = 4;    // ChildSetup::file; without one, a second descriptor of the input

struct ChildSetup {
  std::filesystem::path program;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string input;                     // at most 4096 bytes
  int file = -1;                         // passed as kChildFile; -1: none
  std::chrono::milliseconds limit;       // the longest time that the program may run
};

struct ChildResult {
  std::string output;      // what the program wrote to kChildReport, cut off after about 4 KB
  bool timed_out = false;  // the limit passed, and the child was killed
  int signal = 0;          // the signal that ended it; 0: none
  // -1: a signal ended it, it did not end although it was killed, or the framework ignores SIGCHLD or reaps all
  // children
  int exit_code = -1;
};

// Runs the program in its own process group. Kills the whole group when the program has exited or the limit has
// passed. The child inherits no descriptors except those described above; its output and error output are /dev/null.
// Returns BP_UNSUPPORTED or BP_PERMISSION_DENIED if the child cannot be started or watched.
Result<ChildResult> run_child(const ChildSetup& setup);

// The environment variables of this process that a plugin may need to find its libraries, files and devices. Empty if
// this process has elevated privileges (variable.h), because the helper might not detect them, and would then use the
// variables.
std::vector<std::string> minimal_environment();

}  // namespace backplane
