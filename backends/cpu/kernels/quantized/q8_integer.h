// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of 8-bit quantized values on processors without VNNI: products of 16-bit integers
// (kernels/integer/integer_gemm.h), and depthwise convolutions of floats, which are exact because their sums are small
// integers. Tensors are channels-last.
#pragma once

#include "kernels/quantized/q8_tiles.h"

namespace backplane::cpu {

// Whether these are faster than products of fp32: with vectors of 32 bytes, one instruction multiplies twice as many
// numbers.
bool has_q8_integer();

// Returns why it cannot compute the product, or null if it can.
const char* refuse_integer(const Q8Work& work);

// Creates the step. Requires that refuse_integer(work) returned null.
std::unique_ptr<Step> make_q8_integer(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                      PackedWeights& packed);

}  // namespace backplane::cpu
