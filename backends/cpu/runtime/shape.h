// SPDX-License-Identifier: Apache-2.0
// The extents of a tensor: at most BP_MAX_RANK numbers. The few that tensors mostly have are kept inline, so that
// planning allocates nothing for them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "backplane/types.h"

namespace backplane::cpu {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
    if (rank_ > kNear) far_ = std::make_unique<Far>();
    std::copy(extents.begin(), extents.end(), data());
  }
  Shape(const Shape& other) : Shape(other.span()) {}
  Shape(Shape&& other) noexcept
      : rank_(std::exchange(other.rank_, 0)), near_(other.near_), far_(std::move(other.far_)) {}
  Shape& operator=(Shape other) noexcept {
    rank_ = other.rank_;
    near_ = other.near_;
    far_ = std::move(other.far_);
    return *this;
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return far_ ? (*far_)[static_cast<size_t>(i)] : near_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return far_ ? (*far_)[static_cast<size_t>(i)] : near_[static_cast<size_t>(i)]; }
  void push_back(int64_t extent) {
    if (rank_ == kNear && !far_) {
      far_ = std::make_unique<Far>();
      std::ranges::copy(near_, far_->begin());
    }
    (*this)[rank_++] = extent;
  }

  const int64_t* begin() const { return far_ ? far_->data() : near_.data(); }
  const int64_t* end() const { return begin() + rank_; }
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
  static constexpr int kNear = 6;
  using Far = std::array<int64_t, BP_MAX_RANK>;

  int64_t* data() { return far_ ? far_->data() : near_.data(); }

  int rank_ = 0;
  std::array<int64_t, kNear> near_{};
  std::unique_ptr<Far> far_;  // where there are more
};

}  // namespace backplane::cpu
