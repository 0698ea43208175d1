// SPDX-License-Identifier: Apache-2.0
// Windows over the spatial axes of an image, for convolutions and pools.
#pragma once

#include "judge/oracle.h"

namespace backplane::conform {

// All entries are by spatial axis.
struct Window {
  Extents kernel, strides, dilations, begin, end, in, out;  // `begin` and `end`: padding

  // Reads the attributes, for an input of [batch, channels, spatial…]; `kernel_extents` apply if there is no attribute
  // kernel_shape. Throws std::invalid_argument if the attributes are invalid.
  Window(const Call& call, const Extents& input, Extents kernel_extents);
  // The input position of element `tap` of the window at `position`; -1 if it is outside of the input.
  int64_t source(size_t axis, int64_t position, int64_t tap) const;
  // Whether this element is in the input or its padding; with ceil_mode a window may reach beyond.
  bool in_padded(size_t axis, int64_t position, int64_t tap) const;
};

}  // namespace backplane::conform
