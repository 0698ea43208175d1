// SPDX-License-Identifier: Apache-2.0
// Whether an emulator of another processor runs the test, as scripts/gates/aarch64.sh says with BACKPLANE_EMULATED.
// User-mode emulation starts and limits processes differently, and lacks system calls such as seccomp and openat2.
#pragma once

#include <cstdlib>

namespace backplane::testing {

inline bool is_emulated() {
  return std::getenv("BACKPLANE_EMULATED") != nullptr;
}

}  // namespace backplane::testing
