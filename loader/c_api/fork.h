// SPDX-License-Identifier: Apache-2.0
// Detects handles that were created before a fork.
#pragma once

#include <cstdint>

namespace backplane::c_api {

// Counts forks since the first call: 0 in the process of that call, one more in each child.
uint32_t generation();

}  // namespace backplane::c_api
