// SPDX-License-Identifier: Apache-2.0
// Products of rows with a known matrix, computed in tiles (kernels/conv/tiled.h).
#pragma once

#include "kernels/matmul/onednn_matmul.h"

namespace backplane::cpu {

// Returns why tiles cannot compute this product, or null if they can.
const char* refuse_tiled_product(const KnownProduct& product);

// `inputs` are as for make_onednn_product (onednn_matmul.h). If `bias` is not -1, it is the index of an input that is
// known and has one element per column.
Plan plan_tiled_product(const PlanContext& context, const KnownProduct& product, std::span<const Tensor> inputs,
                        PackedWeights& packed, int bias = -1);

}  // namespace backplane::cpu
