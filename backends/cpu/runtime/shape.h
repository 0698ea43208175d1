// SPDX-License-Identifier: Apache-2.0
// The extents of a tensor, at most BP_MAX_RANK. Up to six are stored inline, so that planning rarely allocates.
// Products of extents are checked for overflow.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backplane/types.h"

namespace backplane::cpu {

// kMaxElements limits the elements of a tensor. In an empty tensor, kMaxExtents limits the product of the nonzero
// extents, so that strides and byte offsets do not overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 48;
inline constexpr int64_t kMaxExtents = int64_t{1} << 58;

// Returns the product of non-negative factors. Throws sdk::Error if it does not fit in int64_t.
int64_t product(std::span<const int64_t> factors);
inline int64_t product(std::initializer_list<int64_t> factors) {
  return product(std::span<const int64_t>(factors.begin(), factors.size()));
}

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

  // Returns the product of the extents of dimensions [first, last). Throws sdk::Error if it does not fit in int64_t.
  int64_t elements(int first, int last) const {
    int64_t n = 1;
    for (int i = first; i < last; ++i) {
      if (__builtin_mul_overflow(n, (*this)[i], &n))
        return product(span().subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)));
    }
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
  std::unique_ptr<Far> far_;  // used if the rank is above kNear
};

// Whether a tensor can have these extents: none is negative, and their product is within the limits above.
bool countable(const Shape& shape);
// Throws the sdk::Error for a shape that is not countable.
[[noreturn]] void throw_uncountable(const Shape& shape);

// Formats a shape as "[2,3]".
std::string to_string(const Shape& shape);

}  // namespace backplane::cpu
