// SPDX-License-Identifier: Apache-2.0
// Memory for tensors: owned blocks aligned to a cache line. Large ones use huge pages if possible, since hardware
// prefetching stops at page boundaries.
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
  size_t mapped = 0;         // bytes of its own mapping; 0: it is from the allocator
  Budget* budget = nullptr;  // the budget that `bytes` are released to, or null
  int64_t bytes = 0;
  void operator()(std::byte* memory) const;
};
using Block = std::unique_ptr<std::byte, BlockDelete>;

// For runs: from the allocator, which reuses freed blocks. Never null: empty tensors have an address too. Throws
// sdk::Error if the calling thread's budget (runtime/threads.h) or the machine lacks the memory.
Block allocate(int64_t bytes);

// For memory that stays (weights, arenas), and for temporary memory while compiling: large blocks have their own pages,
// which are returned to the system when freed, without holes in the heap. Otherwise as `allocate`.
Block allocate_pages(int64_t bytes);

// For other memory whose size follows from a model or from values, such as a std::vector: throws sdk::Error if `count`
// elements exceed what is left of the calling thread's budget.
void require_memory(int64_t count, int64_t element_bytes);

}  // namespace backplane::cpu
