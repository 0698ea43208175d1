// SPDX-License-Identifier: Apache-2.0
// 3×3 depthwise convolutions of 8-bit quantized values, computed in tiles (q8_tiles.h).
#pragma once

#include "kernels/q8/q8_tiles.h"

namespace backplane::cpu {

// Returns why these tiles cannot compute the convolution, or null if they can.
const char* refuse_depthwise(const Q8Work& work);

// Creates the step. Requires that refuse_depthwise(work) returned null.
std::unique_ptr<Step> make_q8_depthwise(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                        PackedWeights& packed);

}  // namespace backplane::cpu
