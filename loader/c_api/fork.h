// SPDX-License-Identifier: Apache-2.0
// Detects handles that a parent process created before a fork.
#pragma once

#include <cstdint>

namespace backplane::c_api {

// Counts the forks since the first call. It is 0 in the process of that call, and one more in each child than in its
// parent.
uint32_t generation();

}  // namespace backplane::c_api
