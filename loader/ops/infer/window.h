// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the spatial axes, as in convolutions and pools.
#pragma once

#include "ops/infer/context.h"

namespace backplane::ops {

// The attributes strides, dilations, pads, auto_pad and ceil_mode, checked and with their defaults.
struct Window {
  std::vector<int64_t> strides, dilations, pads;
  bool same = false;  // auto_pad SAME_UPPER or SAME_LOWER: pads follow from the input
  bool up = false;    // ceil_mode

  static Status read(Context& c, size_t spatial, Window& out);
  // The number of positions of the kernel along a spatial axis.
  Scalar positions(Expressions& m, size_t axis, const Scalar& extent, const Scalar& kernel) const;
};

// The spatial extents of the kernel: attribute kernel_shape, or what follows the first two axes of input `weights`.
Status kernel_shape(Context& c, size_t weights, size_t spatial, Shape& out);

}  // namespace backplane::ops
