// SPDX-License-Identifier: Apache-2.0
// Convolutions with known weights over blocked tensors, as tiles (kernels/conv/tiled.h).
#pragma once

#include "kernels/conv/onednn_conv.h"

namespace backplane::cpu {

// A plan without a step where the convolution is not of that kind, or another one is faster.
Plan plan_blocked_conv(const ConvPlan& conv, std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
