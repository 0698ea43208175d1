// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit quantized values, computed with 16-bit integers: values less their zero points.
// Tensors are channels-last.
#pragma once

#include "kernels/q8/q8_tiles.h"

namespace backplane::cpu {

// Returns why make_q8_words cannot compute `work`, or null if it can. The processor must have AVX2.
const char* refuse_words(const Q8Work& work);

std::unique_ptr<Step> make_q8_words(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                    PackedWeights& packed);

}  // namespace backplane::cpu
