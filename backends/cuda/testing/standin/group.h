// SPDX-License-Identifier: Apache-2.0
// Test code: runs all work items of a group on one thread, and switches between them at barriers.
#pragma once

#include <array>

#include "testing/standin/image.h"

namespace standin {

// Runs `groups` of `size` work items each, one group at a time. `pack` holds the kernel's arguments.
void run(const Kernel& kernel, const void* pack, const std::array<unsigned, 3>& groups,
         const std::array<unsigned, 3>& size);

// The implementation of __syncthreads().
void barrier();

}  // namespace standin
