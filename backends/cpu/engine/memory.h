// SPDX-License-Identifier: Apache-2.0
// Memory for tensors: owned blocks aligned to a cache line; large ones ask for huge pages, across which reading ahead
// does not stop every 4 KiB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace backplane::cpu {

inline constexpr int64_t kAlignment = 64;

inline int64_t align_up(int64_t bytes, int64_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct BlockDelete {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<std::byte, BlockDelete>;

// Never null: an empty tensor has an address too. Throws std::bad_alloc.
inline Block allocate(int64_t bytes) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const bool large = bytes >= 2 * kHugePage;
  const int64_t alignment = large ? kHugePage : kAlignment;
  const auto size = static_cast<size_t>(align_up(bytes > 0 ? bytes : 1, alignment));
  Block block(static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(alignment), size)));
  if (!block) throw std::bad_alloc();
  if (large) madvise(block.get(), size, MADV_HUGEPAGE);  // a wish: refusing it costs nothing
  return block;
}

}  // namespace backplane::cpu
