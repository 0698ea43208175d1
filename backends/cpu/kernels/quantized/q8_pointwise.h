// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit quantized values with 1×1 windows, and matrix products, on tiles.
#pragma once

#include "kernels/quantized/q8_tiles.h"

namespace backplane::cpu {

// Returns why these tiles cannot compute this work, or null if they can.
const char* refuse_pointwise(const Q8Work& work);

// Creates the step, for work that refuse_pointwise did not refuse. With a sum, the other summand is the last input.
std::unique_ptr<Step> make_q8_pointwise(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                        PackedWeights& packed);

}  // namespace backplane::cpu
