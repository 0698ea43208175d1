// SPDX-License-Identifier: Apache-2.0
// ConvInteger with known weights on tiles of 8-bit integers, alone or with the scaling that follows it in dynamically
// quantized models.
#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

// ConvInteger. `definition` plans it in reference mode, or if the weights are not known.
std::unique_ptr<Kernel> make_conv_integer(const Node& conv, std::unique_ptr<Kernel> definition);

// ConvInteger with known weights, Cast to float and Mul by one scale. Inputs: ConvInteger's four (optional ones may be
// absent), then the scale. With one group, supports post-operations except additions of a tensor.
std::unique_ptr<Kernel> make_scaled_conv(const Node& conv);

}  // namespace backplane::cpu
