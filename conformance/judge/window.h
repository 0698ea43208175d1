// SPDX-License-Identifier: Apache-2.0
// Windows over the spatial axes of an image, used by convolutions and pools.
#pragma once

#include "judge/oracle.h"

namespace backplane::conform {

// All members have one entry for each spatial axis.
struct Window {
  Extents kernel, strides, dilations, begin, end, in, out;  // `begin` and `end` are the padding

  // Reads the attributes of a call on an input of [batch, channels, spatial…]. `kernel_extents` is used if the
  // attribute kernel_shape is missing. Throws std::invalid_argument if the attributes are invalid.
  Window(const Call& call, const Extents& input, Extents kernel_extents);
  // The input position of kernel element `tap` of the window at output position `position`; -1 if it is outside the
  // input.
  int64_t source(size_t axis, int64_t position, int64_t tap) const;
  // True if this kernel element is in the input or its padding. With ceil_mode a window may extend beyond both.
  bool in_padded(size_t axis, int64_t position, int64_t tap) const;
};

}  // namespace backplane::conform
