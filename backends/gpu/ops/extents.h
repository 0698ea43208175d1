// SPDX-License-Identifier: Apache-2.0
// The extents of operators that move elements, for the device and for the host (ops/host_values.h).
#pragma once

#include <optional>

#include "engine/shape.h"

namespace backplane::gpu {

// Reshape. In `to`, 0 stands for the extent of the same dimension of `from` unless `zero_is_zero`, and -1 for the
// extent that keeps the number of elements.
Shape reshaped(const Shape& from, Shape to, bool zero_is_zero);
// Squeeze; without axes, all extents of 1 are dropped.
Shape squeezed(const Shape& from, const std::optional<std::vector<int64_t>>& axes);
Shape unsqueezed(const Shape& from, const std::vector<int64_t>& axes);

// Where the elements of a slice are: `strides` and `offset` count elements of the tensor that is sliced.
struct SliceExtents {
  Shape shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};
// Slice; `axes` and `steps` may be empty.
SliceExtents sliced(const Shape& from, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                    const std::vector<int64_t>& axes, const std::vector<int64_t>& steps);

}  // namespace backplane::gpu
