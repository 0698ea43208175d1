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

// The descriptors of the program: its input is standard input.
inline constexpr int kChildReport = 3;  // for its report
inline constexpr int kChildFile = 4;    // an open file, if there is one

struct ChildSetup {
  std::filesystem::path program;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string input;                     // at most 4096 bytes
  int file = -1;                         // passed as kChildFile
  std::chrono::milliseconds limit;       // until it has ended
};

struct ChildResult {
  std::string output;      // the bytes written to kChildReport
  bool timed_out = false;  // the child was killed
  int signal = 0;          // the signal that killed it, or 0
  int exit_code = -1;  // -1 where the system does not report it (the framework ignores SIGCHLD or reaps all children)
};

// Runs it in a process group of its own, all of which is killed when the program ends or the limit has passed.
// All other descriptors are closed or empty. BP_UNSUPPORTED or BP_PERMISSION_DENIED where no child can be
// started or watched.
Result<ChildResult> run_child(const ChildSetup& setup);

// The environment variables of this process that a plugin may need to find its libraries, its files and its devices.
std::vector<std::string> minimal_environment();

}  // namespace backplane
