// SPDX-License-Identifier: Apache-2.0
// Owned blocks of memory for tensors, aligned to a cache line. Large blocks use huge pages if the system allows it,
// because hardware prefetching stops at page boundaries.
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
  size_t mapped = 0;         // size of the block's own mapping in bytes; 0: the block is from the allocator
  Budget* budget = nullptr;  // the budget that `bytes` are released to, or null
  int64_t bytes = 0;
  void operator()(std::byte* memory) const;
};
using Block = std::unique_ptr<std::byte, BlockDelete>;

// Allocates memory for runs with the C allocator, which reuses freed blocks. The result is never null, even for 0
// bytes. Throws sdk::Error if the thread's budget (runtime/thread_state.h) or the machine has too little memory.
Block allocate(int64_t bytes);

// Like `allocate`, for memory that is kept (weights, arenas) and temporary memory of compilation. Large blocks get
// their own pages: freeing them returns the pages to the system and leaves no holes in the heap.
Block allocate_pages(int64_t bytes);

// For memory that is not allocated here, such as a std::vector whose size follows from a model or from values. Throws
// sdk::Error if `count` elements of `element_bytes` bytes need more than the calling thread's budget has left.
void require_memory(int64_t count, int64_t element_bytes);

}  // namespace backplane::cpu
