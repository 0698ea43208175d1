// SPDX-License-Identifier: Apache-2.0
// ONNX's multidirectional broadcasting: the offsets at which several tensors are read to compute one dense result.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/shape.h"

namespace backplane::cpu {

// Returns the broadcast shape, or nullopt if the shapes do not fit each other. Throws sdk::Error if the shape is too
// large for memory.
std::optional<Shape> broadcast_shape(std::span<const Shape> shapes);

// Merges adjacent dimensions where each operand either has all of them or broadcasts all of them. Operands of equal
// shapes need one dimension; an image and a bias per channel need three (batch, channels, positions). Strides are in
// elements, 0 where an operand is repeated.
template <size_t kOperands>
struct Broadcast {
  std::vector<int64_t> extents;  // outermost first, at least one
  std::array<std::vector<int64_t>, kOperands> strides;
  int64_t elements = 1;

  Broadcast(const Shape& result, const std::array<Shape, kOperands>& operands) {
    std::array<int64_t, kOperands> dense;
    dense.fill(1);
    for (int i = result.rank() - 1; i >= 0; --i) {  // innermost first; reversed below
      const int64_t extent = result[i];
      elements *= extent;
      std::array<int64_t, kOperands> stride;
      bool merge = !extents.empty();
      for (size_t k = 0; k < kOperands; ++k) {
        const int own = i - (result.rank() - operands[k].rank());
        const int64_t own_extent = own < 0 ? 1 : operands[k][own];
        stride[k] = own_extent == 1 ? 0 : dense[k];
        dense[k] *= own_extent;
        merge = merge && stride[k] == strides[k].back() * extents.back();
      }
      if (extent == 1) continue;
      if (merge) {
        extents.back() *= extent;
        continue;
      }
      extents.push_back(extent);
      for (size_t k = 0; k < kOperands; ++k) strides[k].push_back(stride[k]);
    }
    if (extents.empty()) {
      extents.push_back(1);
      for (auto& s : strides) s.push_back(0);
    }
    std::reverse(extents.begin(), extents.end());
    for (auto& s : strides) std::reverse(s.begin(), s.end());
  }

  int64_t inner_stride(size_t k) const { return strides[k].back(); }

  // Visits elements [begin, end) of the result. Calls f(result offset, operand offsets, count) for each innermost row
  // among them; the first and the last row may be partial. Offsets are in elements.
  template <class F>
  void rows(int64_t begin, int64_t end, const F& f) const {
    if (begin >= end) return;
    const size_t rank = extents.size();
    std::array<int64_t, BP_MAX_RANK> index{};
    std::array<int64_t, kOperands> offset{};
    for (size_t d = rank, rest = static_cast<size_t>(begin); d-- > 0; rest /= static_cast<size_t>(extents[d])) {
      index[d] = static_cast<int64_t>(rest % static_cast<size_t>(extents[d]));
      for (size_t k = 0; k < kOperands; ++k) offset[k] += index[d] * strides[k][d];
    }
    for (int64_t i = begin; i < end;) {
      const int64_t count = std::min(end - i, extents[rank - 1] - index[rank - 1]);
      f(i, offset, count);
      i += count;
      size_t d = rank - 1;
      index[d] += count;
      for (size_t k = 0; k < kOperands; ++k) offset[k] += count * strides[k][d];
      while (d > 0 && index[d] == extents[d]) {
        for (size_t k = 0; k < kOperands; ++k) offset[k] += strides[k][d - 1] - extents[d] * strides[k][d];
        index[d] = 0;
        ++index[--d];
      }
    }
  }
};

}  // namespace backplane::cpu
