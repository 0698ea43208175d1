// SPDX-License-Identifier: Apache-2.0
// Offsets in one block of memory for buffers that live for a while.
#pragma once

#include <cstdint>
#include <span>

namespace backplane {

struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0;   // the step that writes it
  uint32_t last = 0;    // the last step that reads it, at least `first`
  uint64_t offset = 0;  // the answer
};

// Gives each buffer an offset, a multiple of `alignment`, such that buffers whose lifetimes meet don't overlap. Returns
// the size of the block. Best fit in the order of the steps; O(n log n).
uint64_t plan_memory(std::span<Lifetime> buffers, uint64_t alignment);

}  // namespace backplane
