// SPDX-License-Identifier: Apache-2.0
// The view [outer, n, inner] of a tensor, for operators that work along adjacent dimensions. A row is the n elements
// with the same outer and inner index.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

struct Rows {
  int64_t outer = 1, n = 1, inner = 1;
  // Work items that share a row, a power of two. More than 1 only if the elements of a row are contiguous (inner == 1).
  int64_t lanes = 1;

  int64_t count() const { return outer * inner; }
  std::string macros() const { return " -DLANES=" + std::to_string(lanes); }
  // Sets the launch's range. A work item's row is get_global_id(0) / LANES, its lane is get_global_id(0) % LANES.
  void range(LaunchBuilder& launch) const;
};

// The rows along dimensions [begin, end) of `shape`.
Rows rows_of(const DeviceCaps& caps, const Shape& shape, size_t begin, size_t end);

// Source code for the smallest (`least`) or largest number of a type, for kernels.
std::string extreme(bp_dtype_t dtype, bool least);

}  // namespace backplane::gpu
