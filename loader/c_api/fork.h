// SPDX-License-Identifier: Apache-2.0
// Detects handles that a parent process created before a fork.
#pragma once

#include <cstdint>

namespace backplane::c_api {

// The number of forks between the process that loaded this library and this process: 0 in that process, and in a forked
// child its parent's number plus 1.
uint32_t generation();

}  // namespace backplane::c_api
