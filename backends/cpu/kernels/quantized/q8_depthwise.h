// SPDX-License-Identifier: Apache-2.0
// 3×3 depthwise convolutions of 8-bit quantized values, on tiles (q8_tiles.h).
#pragma once

#include "kernels/quantized/q8_tiles.h"

namespace backplane::cpu {

// Returns why these tiles cannot compute this work, or null if they can.
const char* refuse_depthwise(const Q8Work& work);

// Creates the step, for work that refuse_depthwise did not refuse.
std::unique_ptr<Step> make_q8_depthwise(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                        PackedWeights& packed);

}  // namespace backplane::cpu
