// SPDX-License-Identifier: Apache-2.0
// A helper program that is run for its verdict. The process may be a framework's: no bare fork, no SIGCHLD handler, no
// waitpid(-1), no descriptor leaked.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace backplane {

// The descriptor on which the program speaks.
inline constexpr int kChildVoice = 3;

struct ChildLimits {
  std::chrono::milliseconds first;  // until it said the first word
  std::string_view word;
  std::chrono::milliseconds complete;  // from then on until it ended
};

struct ChildResult {
  std::string said;
  bool timed_out = false;  // it was killed
  int signal = 0;          // that ended it, or 0
  int exit_code = -1;      // -1 where the system does not tell (the framework ignores SIGCHLD or reaps all children)
};

// Runs `program argument` with kChildVoice as its voice and all other descriptors closed or empty. BP_UNSUPPORTED or
// BP_PERMISSION_DENIED where no child can be started or watched.
Result<ChildResult> run_child(const std::filesystem::path& program, const std::string& argument,
                              const ChildLimits& limits);

}  // namespace backplane
