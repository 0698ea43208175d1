// SPDX-License-Identifier: Apache-2.0
// Products of rows of floats with a known matrix, computed on AMX with both operands rounded to bf16, where the session
// allows it (PlanContext::bf16).
#pragma once

#include "kernels/matmul/onednn_matmul.h"

namespace backplane::cpu {

// Returns why the product cannot be computed in this way, or null if it can.
const char* refuse_bf16_product(const PlanContext& context, const KnownProduct& product);

// `inputs` are as for make_onednn_product (onednn_matmul.h). If `bias` is not -1, it is the index of an input that is
// known and has one element per column.
Plan plan_bf16_product(const PlanContext& context, const KnownProduct& product, std::span<const Tensor> inputs,
                       PackedWeights& packed, int bias = -1);

}  // namespace backplane::cpu
