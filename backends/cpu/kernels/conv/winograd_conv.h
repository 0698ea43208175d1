// SPDX-License-Identifier: Apache-2.0
// Winograd convolutions (kernels/conv/winograd_tile.h) of tensors whose blocks have 8 channels. oneDNN has them for
// blocks of 16 only, with AVX-512. Weights must be known at plan time.
#pragma once

#include "kernels/conv/blocked_conv.h"

namespace backplane::cpu {

// Returns why there is no such Winograd convolution, or why it would take longer than others; null if there is one.
// Requires an input and a result that can be blocked.
const char* refuse_winograd_conv(const ConvPlan& conv, std::span<const Tensor> inputs);

Plan plan_winograd_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                        PackedWeights& packed);

}  // namespace backplane::cpu
