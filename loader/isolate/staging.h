// SPDX-License-Identifier: Apache-2.0
// Shared memory for copies of tensors that are bound to an isolated instance.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/status.h"
#include "isolate/descriptor.h"

namespace backplane::isolate {

// A block of shared memory that the instance's process keeps mapped until the instance is destroyed.
struct Staging {
  Mapping mapping;
  Descriptor file;  // closed once it has been sent
  uint64_t block = 0, bytes = 0, used = 0;
};

// The part of a block that holds one copy.
struct Piece {
  Staging* staging = nullptr;
  uint64_t offset = 0, bytes = 0;
  char* data() const { return staging->mapping.data() + offset; }
  bool operator==(const Piece&) const = default;
};

// The blocks of one instance. Pieces point into them.
class StagingPool {
 public:
  // Returns a piece of at least `bytes` bytes. Sizes are powers of two, so that a tensor which grows with every run
  // needs few pieces, and other tensors can use the pieces that it has left. Pages that are never used cost nothing.
  // Small pieces share a block. BP_RESOURCE_EXHAUSTED: the system refuses memory or a descriptor.
  Result<Piece> take(uint64_t bytes);
  // Keeps a piece for a later `take`.
  void give_back(const Piece& piece) { free_.push_back(piece); }

  size_t blocks() const { return blocks_.size(); }

 private:
  std::deque<Staging> blocks_;
  std::vector<Piece> free_;
};

}  // namespace backplane::isolate
