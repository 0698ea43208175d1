// SPDX-License-Identifier: Apache-2.0
// Memory for tensors: owned blocks aligned to a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace backplane::cpu {

inline constexpr int64_t kAlignment = 64;

inline int64_t align_up(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct BlockDelete {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
};
using Block = std::unique_ptr<std::byte, BlockDelete>;

// Never null: an empty tensor has an address too. Throws std::bad_alloc.
inline Block allocate(int64_t bytes) {
  auto size = static_cast<size_t>(bytes > 0 ? align_up(bytes) : kAlignment);
  return Block(static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment})));
}

}  // namespace backplane::cpu
