// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the spatial axes, as in convolutions and pools.
#pragma once

#include "ops/infer/context.h"

namespace backplane::ops {

// The attributes strides, dilations, pads, auto_pad and ceil_mode, checked and with their defaults filled in.
struct Window {
  std::vector<int64_t> strides, dilations, pads;
  bool same = false;  // auto_pad SAME_UPPER or SAME_LOWER: the input determines the pads
  bool up = false;    // ceil_mode

  static Status read(Context& c, size_t spatial, Window& out);
  // The number of positions of the kernel along spatial axis `axis`: the output's extent there.
  Scalar positions(Expressions& m, size_t axis, const Scalar& extent, const Scalar& kernel) const;
};

// The spatial extents of the kernel: attribute kernel_shape, or else the extents of input `weights` from axis `first`
// on. Fails if the two contradict each other. If there is no such input, `weights` is BP_NONE.
Status kernel_shape(Context& c, size_t weights, size_t spatial, Shape& out, int64_t first = 2);

}  // namespace backplane::ops
