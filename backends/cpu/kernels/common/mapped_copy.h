// SPDX-License-Identifier: Apache-2.0
// Fills a tensor by a map for each axis: position i of the result is copied from position map[i] of the source, or
// filled with a constant if map[i] is -1. Pad, CenterCropPad and Resize (nearest) are computed so.
#pragma once

#include <vector>

#include "runtime/shape.h"

namespace backplane::cpu {

class MappedCopy {
 public:
  // One map for each axis of `from`; an empty map leaves the axis as it is.
  MappedCopy(const Shape& from, std::vector<std::vector<int64_t>> maps, int64_t element_size);

  // `fill` points at one element, or is null for zeros.
  void operator()(const void* source, void* target, const void* fill) const;

 private:
  // How rows along the last map are filled: contiguous pieces are copied; or, if each source is repeated equally often
  // (a nearest-neighbour enlargement), repeated; or fetched element by element.
  struct Run {
    int64_t from, count;  // `from` of -1: fill
  };
  template <class T>
  void copy_row(const T* line, T* to, T filler) const;

  Shape from_, to_;
  std::vector<std::vector<int64_t>> maps_;  // of the axes before the block
  int64_t block_, element_size_;            // elements that are copied as a unit
  std::vector<Run> runs_;                   // of the last map; used unless they are short
  int64_t repeats_ = 0;                     // 2 or 4 if the last map repeats each source so often; else 0
};

}  // namespace backplane::cpu
