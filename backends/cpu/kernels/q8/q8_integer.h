// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of 8-bit quantized values that need AVX2 but not VNNI: products of 16-bit integers
// (kernels/q8/q8_words.h), and depthwise convolutions of floats, which are exact because their sums are small
// integers. Tensors are channels-last.
#pragma once

#include "kernels/q8/q8_tiles.h"

namespace backplane::cpu {

// Whether products of 16-bit integers are faster than those of fp32 on this processor. With AVX2 they are, because one
// instruction multiplies twice as many integers as floats.
bool has_q8_integer();

// Returns why make_q8_integer cannot compute `work`, or null if it can.
const char* refuse_integer(const Q8Work& work);

// Creates the step. Requires that refuse_integer(work) returned null.
std::unique_ptr<Step> make_q8_integer(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                      PackedWeights& packed);

}  // namespace backplane::cpu
