// SPDX-License-Identifier: Apache-2.0
// Plans one block of memory for many tensors. Tensors that are live at the same time do not overlap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace backplane::sdk {

// A tensor in the arena. It is live from the first to the last program step that uses it.
struct ArenaTensor {
  uint64_t bytes = 0;
  size_t first = SIZE_MAX;  // first step that uses it
  size_t last = 0;          // last step that uses it
  uint64_t offset = 0;      // set by `pack`

  void touch(size_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }
  bool touched() const { return first <= last; }
  bool overlaps(const ArenaTensor& other) const { return first <= other.last && other.first <= last; }
};

constexpr uint64_t rounded_up(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Sets the offset of every tensor that a step uses to a multiple of `alignment` bytes, and returns the size of the
// arena in bytes. Places the largest tensors first, each in the lowest gap between tensors that are live at the same
// time.
inline uint64_t pack(std::vector<ArenaTensor>& tensors, uint64_t alignment) {
  std::vector<ArenaTensor*> order;
  for (ArenaTensor& tensor : tensors) {
    if (tensor.touched()) order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const ArenaTensor* a, const ArenaTensor* b) { return a->bytes > b->bytes; });
  const auto size = [alignment](const ArenaTensor& tensor) {
    return rounded_up(std::max<uint64_t>(tensor.bytes, 1), alignment);
  };
  uint64_t whole = 0;
  std::vector<ArenaTensor*> placed;  // sorted by offset
  for (ArenaTensor* tensor : order) {
    tensor->offset = 0;
    for (const ArenaTensor* other : placed) {
      if (!tensor->overlaps(*other)) continue;
      if (tensor->offset + size(*tensor) <= other->offset) break;
      tensor->offset = std::max(tensor->offset, other->offset + size(*other));
    }
    whole = std::max(whole, tensor->offset + size(*tensor));
    const auto by_offset = [](const ArenaTensor* a, const ArenaTensor* b) { return a->offset < b->offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), tensor, by_offset), tensor);
  }
  return whole;
}

}  // namespace backplane::sdk
