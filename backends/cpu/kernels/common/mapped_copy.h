// SPDX-License-Identifier: Apache-2.0
// Fills a tensor by one map per axis: position i of the result is copied from position map(i) of the source, or filled
// with a constant if map(i) is negative. Used by Pad, CenterCropPad and Resize (nearest).
#pragma once

#include <functional>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/shape.h"

namespace backplane::cpu {

class MappedCopy {
 public:
  struct Map {
    int64_t extent = 0;                        // of the result
    std::function<int64_t(int64_t)> position;  // null: copies the axis unchanged
  };
  // `maps` has one map per axis of `from`. They are tabulated if the plan may build tables of this size
  // (runtime/tables.h); otherwise each run computes them part by part.
  MappedCopy(const PlanContext& context, const Shape& from, std::vector<Map> maps, int64_t element_size);

  // `fill` points to one element; null fills with zeros.
  void operator()(const void* source, void* target, const void* fill) const;

 private:
  struct Run {
    int64_t from, count;  // `from`: the first source position, or -1 to fill
  };
  // A part of the last map.
  struct Line {
    std::vector<int64_t> map;
    std::vector<Run> runs;  // not used if the block is one element and runs are short
    int64_t repeats = 0;    // 2 or 4 if the map repeats each source that many times, else 0
  };
  Line line_of(int64_t begin, int64_t end) const;
  // Computes a part of a row, which is a line of the result along the last mapped axis, in one of three ways: copies
  // runs of adjacent sources; repeats each 4-byte source 2 or 4 times (nearest-neighbor enlargement); or copies element
  // by element.
  template <class T>
  void copy_row(const T* from, T* to, const Line& line, T filler) const;
  // Computes rows [begin, end), from position `first` of the last map on.
  template <class T, class Position>
  void copy_rows(const T* source, T* target, int64_t begin, int64_t end, int64_t first, const Line& line, T filler,
                 const Position& position) const;
  int64_t position(int axis, int64_t i) const {
    const Map& map = maps_[static_cast<size_t>(axis)];
    return map.position ? map.position(i) : i;
  }

  Shape from_, to_;
  std::vector<Map> maps_;                     // one per axis; the axes after these form the block
  std::vector<std::vector<int64_t>> tables_;  // by axis before the last one; empty if the maps are not tabulated
  Line line_;                                 // the whole last map, if it is tabulated
  int64_t block_, element_size_;              // `block_`: elements per position of the last map, copied as a unit
  int64_t part_;                              // positions of the last map that are computed at a time
};

}  // namespace backplane::cpu
