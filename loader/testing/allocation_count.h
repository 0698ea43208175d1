// SPDX-License-Identifier: Apache-2.0
// Counts the calls of operator new in the whole process, except those with an alignment. The loader and its backends
// share the operator.
#pragma once

#include <cstdint>

namespace backplane {

// The number of allocations since the process started.
uint64_t allocation_count();

}  // namespace backplane
