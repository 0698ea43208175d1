// SPDX-License-Identifier: Apache-2.0
// Steps through the positions of several dimensions, the last one fastest, and computes the offset from their strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/shape.h"

namespace backplane::cpu {

struct Dimensions {
  std::vector<int64_t> extents, strides;

  void add(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }
  // Returns the number of positions. Throws sdk::Error if it does not fit in int64_t.
  int64_t positions() const { return product(extents); }
};

class Odometer {
 public:
  // Borrows `dimensions`.
  explicit Odometer(const Dimensions& dimensions, int64_t position = 0)
      : d_(&dimensions), index_(dimensions.extents.size()) {
    for (size_t d = index_.size(); d-- > 0 && position > 0;) {
      index_[d] = position % d_->extents[d];
      position /= d_->extents[d];
      offset_ += index_[d] * d_->strides[d];
    }
  }
  int64_t offset() const { return offset_; }
  void next() {
    for (size_t d = index_.size(); d-- > 0;) {
      offset_ += d_->strides[d];
      if (++index_[d] < d_->extents[d]) return;
      offset_ -= d_->strides[d] * d_->extents[d];
      index_[d] = 0;
    }
  }

 private:
  const Dimensions* d_;
  std::vector<int64_t> index_;
  int64_t offset_ = 0;
};

}  // namespace backplane::cpu
