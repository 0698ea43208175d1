// SPDX-License-Identifier: Apache-2.0
#include "run/memory_plan.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <vector>

namespace backplane {
namespace {

// The block's free ranges, indexed by offset and by size.
class Holes {
 public:
  uint64_t take(uint64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      const uint64_t offset = end_;
      overflows_ = __builtin_add_overflow(end_, bytes, &end_) || overflows_;
      return offset;
    }
    const auto [size, offset] = *fit;
    erase(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void release(uint64_t offset, uint64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      const auto [at, size] = *next;
      bytes += size;
      erase(at, size);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [at, size] = *std::prev(next);
      if (at + size == offset) {
        erase(at, size);
        offset = at;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  // The size of the block in bytes; UINT64_MAX if the size exceeds 64 bits.
  uint64_t end() const { return overflows_ ? UINT64_MAX : end_; }

 private:
  void insert(uint64_t offset, uint64_t size) {
    by_offset_[offset] = size;
    by_size_.insert({size, offset});
  }
  void erase(uint64_t offset, uint64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  uint64_t end_ = 0;
  bool overflows_ = false;
  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

}  // namespace

uint64_t plan_memory(std::span<Lifetime> buffers, uint64_t alignment) {
  std::vector<Lifetime*> order;
  for (Lifetime& buffer : buffers) order.push_back(&buffer);
  std::ranges::stable_sort(order, [](const Lifetime* a, const Lifetime* b) {
    return a->first != b->first ? a->first < b->first : a->bytes > b->bytes;
  });
  const auto later_death = [](const Lifetime* a, const Lifetime* b) { return a->last > b->last; };
  std::priority_queue<const Lifetime*, std::vector<const Lifetime*>, decltype(later_death)> alive(later_death);
  const auto padded = [&](uint64_t bytes) {
    return (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  };
  Holes holes;
  for (Lifetime* buffer : order) {
    for (; !alive.empty() && alive.top()->last < buffer->first; alive.pop())
      holes.release(alive.top()->offset, padded(alive.top()->bytes));
    buffer->offset = holes.take(padded(buffer->bytes));
    alive.push(buffer);
  }
  return holes.end();
}

}  // namespace backplane
