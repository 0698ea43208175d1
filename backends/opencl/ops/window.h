// SPDX-License-Identifier: Apache-2.0
// A window that slides over the spatial dimensions of [N, C, D1 … Dn]: convolutions and pools, up to three of them.
// Missing ones are put in front with extent 1, so that kernels are written once, for three.
#pragma once

#include <array>

#include "ops/row.h"

namespace backplane::opencl {

using Spatial = std::array<int64_t, 3>;

struct Window {
  size_t dims = 0;  // that the tensor really has
  Spatial in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  Spatial begin{0, 0, 0}, end{0, 0, 0};  // padding before and behind

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  // How kernels/phases.cl lays the input out: phases that the window's taps meet, and the places of a phase.
  Spatial phases() const;
  Spatial places() const;
  // Whether that is how the input lies already.
  bool in_place() const;
  // [first, second, spatial output extents].
  Shape output_shape(int64_t first, int64_t second) const;
  // " -DKERNEL_D=… -DSTRIDE_W=…": what kernels call it; padding before only.
  std::string macros() const;
  std::string phase_macros() const;  // " -DSTRIDE_D=… -DPHASES_W=…"
  std::string tap_macros() const;    // " -DKERNEL_D=… -DDILATION_W=…"
};

// The node's attributes over input extents `shape`; `kernel` has the spatial extents of the window. Throws sdk::Error
// where they do not fit.
Window window_of(const Node& node, const Shape& shape, const std::vector<int64_t>& kernel);
// Attributes of lengths and values that make sense for input 0's rank, which has one to three spatial dimensions.
Verdict supports_window(const Node& node);

}  // namespace backplane::opencl
