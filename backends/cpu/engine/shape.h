// SPDX-License-Identifier: Apache-2.0
// The extents of a tensor: at most BP_MAX_RANK numbers, kept inline so that planning allocates nothing for them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "backplane/types.h"

namespace backplane::cpu {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
    std::copy(extents.begin(), extents.end(), extents_.begin());
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return extents_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return extents_[static_cast<size_t>(i)]; }
  void push_back(int64_t extent) { extents_[static_cast<size_t>(rank_++)] = extent; }

  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }
  std::span<const int64_t> span() const { return {begin(), static_cast<size_t>(rank_)}; }

  // The product of the extents in [first, last).
  int64_t elements(int first, int last) const {
    int64_t n = 1;
    for (int i = first; i < last; ++i) n *= (*this)[i];
    return n;
  }
  int64_t elements() const { return elements(0, rank_); }

  friend bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a, b); }

 private:
  int rank_ = 0;
  std::array<int64_t, BP_MAX_RANK> extents_{};
};

}  // namespace backplane::cpu
