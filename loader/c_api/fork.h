// SPDX-License-Identifier: Apache-2.0
// Detects handles that were created before a fork.
#pragma once

#include <cstdint>

namespace backplane::c_api {

// The number of forks since the loader was loaded: 0 in that process, one more in each child.
uint32_t generation();

}  // namespace backplane::c_api
