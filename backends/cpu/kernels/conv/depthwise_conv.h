// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of blocked tensors, with windows of any size. oneDNN has fast kernels for small windows over
// images only: it computes others as a product for each channel.
#pragma once

#include "kernels/conv/onednn_conv.h"

namespace backplane::cpu {

// Returns why a convolution is not computed here, or null if it is. Requires an input and a result that can be blocked
// (can_be_blocked in runtime/format.h).
const char* refuse_depthwise_conv(const ConvPlan& conv, std::span<const Tensor> inputs);

Plan plan_depthwise_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                         PackedWeights& packed);

}  // namespace backplane::cpu
