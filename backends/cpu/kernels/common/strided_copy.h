// SPDX-License-Identifier: Apache-2.0
// Fills a dense tensor with another tensor's elements, read by strides, as Transpose, Slice, Expand and Tile do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::cpu {

class StridedCopy {
 public:
  // Reads extents[0] × extents[1] × … elements of `element_size` bytes; stride and offset count elements, strides may
  // be 0 or negative. Dimensions that are contiguous with each other are merged.
  StridedCopy(std::span<const int64_t> extents, std::span<const int64_t> strides, int64_t offset, int64_t element_size);

  // Whether it copies one contiguous block that starts at the source's first element.
  bool is_plain() const { return extents_.size() == 1 && strides_[0] == 1 && offset_ == 0; }
  void operator()(const void* source, void* target) const;

 private:
  template <class T>
  void copy_rows(const T* source, T* target, int64_t first, int64_t last) const;
  template <class T>
  void copy_tiles(const T* source, T* target, size_t unit) const;

  std::vector<int64_t> extents_, strides_;
  int64_t offset_, element_size_;
  int64_t elements_ = 1;
};

}  // namespace backplane::cpu
