// SPDX-License-Identifier: Apache-2.0
// Assigns buffers offsets in one block of memory, in which buffers with disjoint lifetimes may overlap.
#pragma once

#include <cstdint>
#include <span>

namespace backplane {

struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0;   // number of the first task that uses the buffer
  uint32_t last = 0;    // number of the last task that uses the buffer; at least `first`
  uint64_t offset = 0;  // set by plan_memory
};

// Sets the offset of each buffer to a multiple of `alignment`; buffers with overlapping lifetimes do not overlap.
// Returns the size of the block in bytes; UINT64_MAX if it is that large or larger, and then no offset is valid. Best
// fit in the order of the tasks, O(n log n).
uint64_t plan_memory(std::span<Lifetime> buffers, uint64_t alignment);

}  // namespace backplane
