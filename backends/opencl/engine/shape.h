// SPDX-License-Identifier: Apache-2.0
// Extents, and tensors as the planner sees them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backplane/graph.hpp"
#include "engine/cl.h"

namespace backplane::opencl {

using Shape = std::vector<int64_t>;

inline int64_t elements(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}
// Elements of the dimensions [begin, end).
inline int64_t elements(const Shape& shape, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= shape[i];
  return n;
}
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

// A tensor of a plan: dense, row-major, on the device. `id` is the planner's.
struct Tensor {
  uint32_t id = BP_NONE;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  Shape shape;

  explicit operator bool() const { return id != BP_NONE; }
  int64_t count() const { return elements(shape); }
  size_t rank() const { return shape.size(); }
};

// How kernels call a type: "f32", "i64", "b8". Its storage and arithmetic are in kernels/types.cl.
std::string_view type_name(bp_dtype_t dtype);
// The unsigned integer of the same size, for kernels that only move elements.
std::string_view word_name(bp_dtype_t dtype);
uint32_t bytes_of(bp_dtype_t dtype);
bool is_float(bp_dtype_t dtype);  // any floating-point type
// The shape that both broadcast to by ONNX's rule. Throws sdk::Error when there is none.
Shape broadcast(const Shape& a, const Shape& b);
// -1 counts from the end. Throws sdk::Error when it is beyond the rank.
size_t axis_of(int64_t axis, size_t rank);

}  // namespace backplane::opencl
