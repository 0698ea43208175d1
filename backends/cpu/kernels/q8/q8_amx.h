// SPDX-License-Identifier: Apache-2.0
// 1×1 convolutions and matrix products of 8-bit quantized values (q8_tiles.h) on AMX's tile registers.
#pragma once

#include "kernels/q8/q8_tiles.h"

namespace backplane::cpu {

// Returns why AMX cannot compute the product, or null if it can.
const char* refuse_amx(const Q8Work& work);

// Creates the step. Requires that refuse_amx(work) returned null. If work.sum is set, the tensor to add is the last
// input.
std::unique_ptr<Step> make_q8_amx(const PlanContext& context, Q8Work work, std::span<const Tensor> inputs,
                                  PackedWeights& packed);

}  // namespace backplane::cpu
