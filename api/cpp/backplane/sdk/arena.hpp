// SPDX-License-Identifier: Apache-2.0
// Plans one block of memory for many tensors. Tensors that are live at the same time do not overlap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
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
};

constexpr uint64_t rounded_up(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

namespace arena {

using Tensors = std::vector<ArenaTensor*>;

template <class Test>
void drop_if(Tensors& tensors, Test test) {
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), test), tensors.end());
}

// Calls `meet(a, b)` for every pair of tensors that are live at the same time, until it returns false. `by_start` is
// sorted by first step.
template <class Meet>
void each_overlap(const Tensors& by_start, Meet meet) {
  Tensors live;
  for (ArenaTensor* tensor : by_start) {
    drop_if(live, [&](const ArenaTensor* other) { return other->last < tensor->first; });
    for (ArenaTensor* other : live) {
      if (!meet(tensor, other)) return;
    }
    live.push_back(tensor);
  }
}

// Places the largest tensors first, each in the lowest gap between those placed that are live at the same time. Takes
// time in proportion to the number of pairs that overlap.
template <class Size>
uint64_t place_by_size(std::vector<ArenaTensor>& tensors, const Tensors& by_start, const Size& size) {
  std::vector<Tensors> neighbors(tensors.size());
  const auto index = [&](const ArenaTensor* tensor) { return static_cast<size_t>(tensor - tensors.data()); };
  each_overlap(by_start, [&](ArenaTensor* a, ArenaTensor* b) {
    neighbors[index(a)].push_back(b);
    neighbors[index(b)].push_back(a);
    return true;
  });
  Tensors order = by_start;
  std::sort(order.begin(), order.end(), [](const ArenaTensor* a, const ArenaTensor* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });
  std::vector<bool> is_placed(tensors.size());
  uint64_t whole = 0;
  for (ArenaTensor* tensor : order) {
    Tensors& placed = neighbors[index(tensor)];
    drop_if(placed, [&](const ArenaTensor* other) { return !is_placed[index(other)]; });
    std::sort(placed.begin(), placed.end(),
              [](const ArenaTensor* a, const ArenaTensor* b) { return a->offset < b->offset; });
    tensor->offset = 0;
    for (const ArenaTensor* other : placed) {
      if (tensor->offset + size(*tensor) <= other->offset) break;
      tensor->offset = std::max(tensor->offset, other->offset + size(*other));
    }
    is_placed[index(tensor)] = true;
    whole = std::max(whole, tensor->offset + size(*tensor));
  }
  return whole;
}

// Places tensors in the order of their first steps: each in the smallest free block that is large enough or, if there
// is none, in a new block at the end. Used where there are too many overlapping pairs for `place_by_size`.
template <class Size>
uint64_t place_by_time(const Tensors& by_start, const Size& size) {
  struct Block {
    uint64_t offset, bytes;
    size_t last;
  };
  const auto ends_later = [](const Block& a, const Block& b) { return a.last > b.last; };
  std::priority_queue<Block, std::vector<Block>, decltype(ends_later)> live(ends_later);
  std::multimap<uint64_t, uint64_t> free;  // offsets by size
  uint64_t whole = 0;
  for (ArenaTensor* tensor : by_start) {
    for (; !live.empty() && live.top().last < tensor->first; live.pop())
      free.emplace(live.top().bytes, live.top().offset);
    Block block{whole, size(*tensor), tensor->last};
    if (const auto fit = free.lower_bound(block.bytes); fit != free.end()) {
      block.bytes = fit->first;
      block.offset = fit->second;
      free.erase(fit);
    } else {
      whole += block.bytes;
    }
    tensor->offset = block.offset;
    live.push(block);
  }
  return whole;
}

}  // namespace arena

// Sets the offset of every tensor that a step uses to a multiple of `alignment` bytes, and returns the size of the
// arena in bytes.
inline uint64_t pack(std::vector<ArenaTensor>& tensors, uint64_t alignment) {
  arena::Tensors by_start;
  for (ArenaTensor& tensor : tensors) {
    if (tensor.touched()) by_start.push_back(&tensor);
  }
  std::stable_sort(by_start.begin(), by_start.end(),
                   [](const ArenaTensor* a, const ArenaTensor* b) { return a->first < b->first; });
  const auto size = [alignment](const ArenaTensor& tensor) {
    return rounded_up(std::max<uint64_t>(tensor.bytes, 1), alignment);
  };
  constexpr size_t kMostPairs = 2'000'000;  // 32 MB of pointers, and some 50 ms
  size_t pairs = 0;
  arena::each_overlap(by_start, [&](ArenaTensor*, ArenaTensor*) { return ++pairs <= kMostPairs; });
  return pairs <= kMostPairs ? arena::place_by_size(tensors, by_start, size) : arena::place_by_time(by_start, size);
}

}  // namespace backplane::sdk
