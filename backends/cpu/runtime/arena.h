// SPDX-License-Identifier: Apache-2.0
// Assigns offsets within one block of memory that is allocated later. An allocation goes into the smallest free hole
// that fits; if none fits, the block grows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "backplane/sdk/fence.hpp"
#include "runtime/memory.h"

namespace backplane::cpu {

class Arena {
 public:
  // Returns an offset in bytes, a multiple of kAlignment (runtime/memory.h). Throws sdk::Error if the block would
  // exceed kMaxBytes.
  int64_t allocate(int64_t bytes) {
    bytes = align_up(std::max<int64_t>(bytes, 1));
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second >= bytes && (best == holes_.end() || hole->second < best->second)) best = hole;
    }
    if (best == holes_.end()) return grow(bytes);
    auto [offset, size] = *best;
    holes_.erase(best);
    if (size > bytes) holes_.emplace(offset + bytes, size - bytes);
    return offset;
  }

  // `bytes`: as passed to `allocate`.
  void release(int64_t offset, int64_t bytes) {
    auto hole = holes_.emplace(offset, align_up(std::max<int64_t>(bytes, 1))).first;
    auto next = std::next(hole);
    if (next != holes_.end() && hole->first + hole->second == next->first) {
      hole->second += next->second;
      holes_.erase(next);
    }
    if (hole == holes_.begin()) return;
    auto previous = std::prev(hole);
    if (previous->first + previous->second == hole->first) {
      previous->second += hole->second;
      holes_.erase(hole);
    }
  }

  int64_t size() const { return end_; }  // bytes that the block needs

 private:
  // Allocates at the end of the block. A hole at the end becomes part of the allocation.
  int64_t grow(int64_t bytes) {
    int64_t offset = end_;
    if (!holes_.empty() && std::prev(holes_.end())->first + std::prev(holes_.end())->second == end_) {
      offset = std::prev(holes_.end())->first;
      holes_.erase(std::prev(holes_.end()));
    }
    end_ = offset + bytes;
    if (end_ > kMaxBytes)
      throw sdk::Error(BP_RESOURCE_EXHAUSTED, "the intermediate tensors of a run need more than 2^60 bytes");
    return offset;
  }

  static constexpr int64_t kMaxBytes = int64_t{1} << 60;

  std::map<int64_t, int64_t> holes_;  // size in bytes by offset
  int64_t end_ = 0;
};

}  // namespace backplane::cpu
