// SPDX-License-Identifier: Apache-2.0
// Memory for tensors: owned blocks aligned to a cache line; large ones ask for huge pages, across which reading ahead
// does not stop every 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace backplane::cpu {

class Budget;

inline constexpr int64_t kAlignment = 64;

inline int64_t align_up(int64_t bytes, int64_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct BlockDelete {
  size_t mapped = 0;         // bytes of a mapping of its own; 0: the allocator's
  Budget* budget = nullptr;  // that `bytes` are given back to, or none
  int64_t bytes = 0;
  void operator()(std::byte* memory) const;
};
using Block = std::unique_ptr<std::byte, BlockDelete>;

// For a run: the allocator has what was freed ready for the next one. Never null: an empty tensor has an address too.
// Throws sdk::Error where the calling thread's budget (runtime/threads.h) or the machine has no such memory.
Block allocate(int64_t bytes);

// For what stays (weights, arenas), and for what is needed once while compiling: large blocks have pages of their own,
// which go back to the system when they are freed and leave no hole in the heap. As `allocate` otherwise.
Block allocate_pages(int64_t bytes);

// For memory from elsewhere whose size follows from a model or from values, such as a vector's: throws sdk::Error where
// so many elements of a size are more than the calling thread's budget has left.
void require_memory(int64_t count, int64_t element_bytes);

}  // namespace backplane::cpu
