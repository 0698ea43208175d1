// SPDX-License-Identifier: Apache-2.0
// 1×1 convolutions and matrix products of 8-bit quantized values, computed in tiles (q8_tiles.h).
#pragma once

#include "kernels/q8/q8_pointwise_tile.h"
#include "kernels/q8/q8_tiles.h"

namespace backplane::cpu {

// Returns why these tiles cannot compute the product, or null if they can.
const char* refuse_pointwise(const Q8Work& work);

// Returns the constants of the addition work.sum, which must be set.
PointwiseSum pointwise_sum(const Q8Work& work);

// Creates the step. Requires that refuse_pointwise(work) returned null. If work.sum is set, the tensor to add is the
// last input.
std::unique_ptr<Step> make_q8_pointwise(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                        PackedWeights& packed);

}  // namespace backplane::cpu
