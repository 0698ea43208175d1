// SPDX-License-Identifier: Apache-2.0
// Extents and the arithmetic on them that every backend needs.
#pragma once

#include <string>
#include <vector>

#include "backplane/graph.hpp"
#include "backplane/sdk/fence.hpp"

namespace backplane::sdk {

using Shape = std::vector<int64_t>;

// The product of the extents of dimensions [begin, end). Throws Error on overflow, except that it returns 0 if an
// extent is 0.
inline int64_t elements(const Shape& shape, size_t begin, size_t end) {
  int64_t n = 1;
  bool beyond = false;
  for (size_t i = begin; i < end; ++i) {
    if (shape[i] == 0) return 0;
    beyond = beyond || __builtin_mul_overflow(n, shape[i], &n);
  }
  if (beyond) throw Error(BP_RESOURCE_EXHAUSTED, "a tensor has more elements than 64 bits can count");
  return n;
}
inline int64_t elements(const Shape& shape) {
  return elements(shape, 0, shape.size());
}
// The number of elements of a value: 0 if there is no value or its shape is not static, INT64_MAX on overflow. Does not
// allocate.
inline int64_t elements(const view::Value& value) {
  if (!value || !value.has_static_shape()) return 0;
  int64_t n = 1;
  bool beyond = false;
  for (int32_t i = 0; i < value.rank(); ++i) {
    const int64_t extent = value.extent(static_cast<uint32_t>(i));
    if (extent == 0) return 0;
    beyond = beyond || __builtin_mul_overflow(n, extent, &n);
  }
  return beyond ? INT64_MAX : n;
}

// Formats a shape as "[2,3]".
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

// The shape that results from broadcasting by ONNX's rules. Throws Error if the shapes do not broadcast.
inline Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = a.size() >= b.size() ? a : b;
  const size_t skip = result.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& extent = result[skip + i];
    if (extent == shorter[i] || shorter[i] == 1) continue;
    if (extent != 1)
      throw Error(BP_TYPE_MISMATCH, "extents " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    extent = shorter[i];
  }
  return result;
}

// Converts an axis that may be negative (counted from the end) to one counted from the front. Throws Error if it is out
// of range.
inline size_t axis_of(int64_t axis, size_t rank) {
  const int64_t at = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  if (at < 0 || at >= static_cast<int64_t>(rank)) {
    throw Error(BP_INVALID_MODEL, "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  }
  return static_cast<size_t>(at);
}

}  // namespace backplane::sdk
