// SPDX-License-Identifier: Apache-2.0
// Tiled convolutions of blocked tensors with known weights (kernels/conv/tiled.h).
#pragma once

#include "kernels/conv/onednn_conv.h"

namespace backplane::cpu {

// Returns why tiles do not compute this convolution of tensors that can be blocked, or null if they do.
const char* refuse_blocked_conv(const ConvPlan& conv, std::span<const Tensor> inputs);

Plan plan_blocked_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                       PackedWeights& packed);

}  // namespace backplane::cpu
