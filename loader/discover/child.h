// SPDX-License-Identifier: Apache-2.0
// Runs a helper program and returns its report. The process belongs to a framework: no bare fork, no SIGCHLD handler,
// no waitpid(-1), no leaked descriptor.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace backplane {

// The program's descriptors, in addition to standard input, from which it reads ChildSetup::input.
inline constexpr int kChildReport = 3;  // for its report
inline constexpr int kChildFile = 4;    // an open file, if there is one

struct ChildSetup {
  std::filesystem::path program;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string input;                     // at most 4096 bytes
  int file = -1;                         // passed as kChildFile
  std::chrono::milliseconds limit;       // on the program's run time
};

struct ChildResult {
  std::string output;      // the bytes written to kChildReport
  bool timed_out = false;  // the limit has passed; the child was killed
  int signal = 0;          // the signal that killed it, or 0
  int exit_code = -1;  // -1 if a signal ended it, or if unknown (the framework ignores SIGCHLD or reaps all children)
};

// Runs the program in a process group of its own, all of which is killed when the program has exited or the limit has
// passed. All other descriptors are closed or empty. Returns BP_UNSUPPORTED or BP_PERMISSION_DENIED if no child can be
// started or watched.
Result<ChildResult> run_child(const ChildSetup& setup);

// The environment variables of this process that a plugin may need to find its libraries, its files and its devices.
std::vector<std::string> minimal_environment();

}  // namespace backplane
