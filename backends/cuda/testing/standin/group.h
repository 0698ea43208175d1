// SPDX-License-Identifier: Apache-2.0
// Test code: runs the work items of a group on one thread, each until the next barrier.
#pragma once

#include <array>

#include "testing/standin/image.h"

namespace standin {

// Runs `groups` of `size` items each, one group after the other.
void run(const Kernel& kernel, const void* pack, const std::array<unsigned, 3>& groups,
         const std::array<unsigned, 3>& size);

// The implementation of __syncthreads().
void barrier();

}  // namespace standin
