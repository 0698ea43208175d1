// SPDX-License-Identifier: Apache-2.0
// ConvInteger with weights known at plan time, computed in tiles of 8-bit integers: alone, or with the scaling that
// follows it in dynamically quantized models.
#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

// Creates the kernel of ConvInteger. `definition` is used instead in reference mode, or if the weights are not known.
std::unique_ptr<Kernel> make_conv_integer(const Node& conv, std::unique_ptr<Kernel> definition);

// Creates a kernel for ConvInteger with known weights, followed by a Cast to float and a Mul by one scale. The inputs
// are ConvInteger's four (optional ones may be absent), then the scale, and optionally one 32-bit integer per output
// channel that is added to its sums. For a convolution with one group, the kernel supports post-operations except the
// addition of a tensor.
std::unique_ptr<Kernel> make_scaled_conv(const Node& conv);

}  // namespace backplane::cpu
