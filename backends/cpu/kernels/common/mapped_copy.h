// SPDX-License-Identifier: Apache-2.0
// Fills a tensor by one map per axis: position i of the result is copied from position map[i] of the source, or filled
// with a constant if map[i] is negative. Used by Pad, CenterCropPad and Resize (nearest).
#pragma once

#include <vector>

#include "runtime/shape.h"

namespace backplane::cpu {

class MappedCopy {
 public:
  // `maps` has one map per axis of `from`; an empty map copies the axis unchanged.
  MappedCopy(const Shape& from, std::vector<std::vector<int64_t>> maps, int64_t element_size);

  // `fill` points to one element; null fills with zeros.
  void operator()(const void* source, void* target, const void* fill) const;

 private:
  struct Run {
    int64_t from, count;  // `from`: the first source position, or -1 to fill
  };
  // Computes a row, which is a line of the result along the last mapped axis, in one of three ways: copies runs of
  // adjacent sources; repeats each 4-byte source 2 or 4 times (nearest-neighbor enlargement); or copies element by
  // element.
  template <class T>
  void copy_row(const T* line, T* to, T filler) const;

  Shape from_, to_;
  std::vector<std::vector<int64_t>> maps_;  // one per axis; the axes after these form the block
  int64_t block_, element_size_;            // `block_`: elements per position of the last map, copied as a unit
  std::vector<Run> runs_;  // the runs of the last map; not used if the block is one element and runs are short
  int64_t repeats_ = 0;    // 2 or 4 if the last map repeats each source that many times, else 0
};

}  // namespace backplane::cpu
