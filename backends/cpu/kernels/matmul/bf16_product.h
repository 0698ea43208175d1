// SPDX-License-Identifier: Apache-2.0
// Products of rows of floats with a known matrix, whose operands are rounded to bf16 (PlanContext::bf16), in tiles.
#pragma once

#include "kernels/matmul/onednn_matmul.h"

namespace backplane::cpu {

// Returns why the product cannot be computed in this way, or null if it can.
const char* refuse_bf16_product(const PlanContext& context, const KnownProduct& product);

// `inputs` are as for make_onednn_product. If `bias` is not -1, it is the index of an input that is known and has one
// element per column.
Plan plan_bf16_product(const PlanContext& context, const KnownProduct& product, std::span<const Tensor> inputs,
                       PackedWeights& packed, int bias = -1);

}  // namespace backplane::cpu
