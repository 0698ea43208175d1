// SPDX-License-Identifier: Apache-2.0
// Counts allocations with `new` in the whole process: the loader and its backends use the same operator.
#pragma once

#include <cstdint>

namespace backplane {

// The number of allocations so far.
uint64_t allocation_count();

}  // namespace backplane
