// SPDX-License-Identifier: Apache-2.0
// Tensors of the planner, and the names of types in kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backplane/sdk/dtypes.hpp"
#include "backplane/sdk/shape.hpp"

namespace backplane::gpu {

using sdk::axis_of;
using sdk::broadcast;
using sdk::bytes_of;
using sdk::elements;
using sdk::is_float;
using sdk::Shape;
using sdk::to_string;

// A tensor of a plan: dense, row-major, on the device. The planner assigns `id`.
struct Tensor {
  uint32_t id = BP_NONE;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  Shape shape;

  explicit operator bool() const { return id != BP_NONE; }
  int64_t count() const { return elements(shape); }
  size_t rank() const { return shape.size(); }
};

// Returns, for each of `rank` dimensions, whether `axes` names it. Throws BP_INVALID_ARGUMENT if one is repeated, and
// as axis_of does if one is out of range.
std::vector<bool> axis_set(const std::vector<int64_t>& axes, size_t rank);

// The name of a type in kernels: "f32", "i64", "b8". kernels/types.cl defines its storage and arithmetic types.
std::string_view type_name(bp_dtype_t dtype);
// The name of the unsigned integer of the same size, for kernels that only move elements.
std::string_view word_name(bp_dtype_t dtype);

}  // namespace backplane::gpu
