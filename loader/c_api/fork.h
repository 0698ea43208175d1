// SPDX-License-Identifier: Apache-2.0
// Detects handles that a parent process created before a fork.
#pragma once

#include <cstdint>

namespace backplane::c_api {

// The number of forks since the first call of this function: 0 in the process of that call, and in a child its parent's
// number plus 1.
uint32_t generation();

}  // namespace backplane::c_api
