// SPDX-License-Identifier: Apache-2.0
// Convolutions with known weights over blocked tensors, as tiles (kernels/conv/tiled.h).
#pragma once

#include "kernels/conv/onednn_conv.h"

namespace backplane::cpu {

// Why tiles do not compute this convolution of tensors that can be blocked, or null.
const char* refuse_blocked_conv(const ConvPlan& conv, std::span<const Tensor> inputs);

Plan plan_blocked_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                       PackedWeights& packed);

}  // namespace backplane::cpu
