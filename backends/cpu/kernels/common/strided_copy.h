// SPDX-License-Identifier: Apache-2.0
// Fills a dense tensor with elements of another tensor that are read with given strides, as for Transpose, Slice,
// Expand and Tile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::cpu {

class StridedCopy {
 public:
  // The result has the extents `extents`. `element_size` is in bytes. Strides and `offset` are those in the source, in
  // elements; strides may be 0 or negative. Dimensions that are contiguous with each other are merged.
  StridedCopy(std::span<const int64_t> extents, std::span<const int64_t> strides, int64_t offset, int64_t element_size);

  // Whether the copy is one contiguous block that starts at the source's first element.
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
