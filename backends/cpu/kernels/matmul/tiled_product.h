// SPDX-License-Identifier: Apache-2.0
// A product of rows with a known matrix as tiles (kernels/conv/tiled.h).
#pragma once

#include "kernels/matmul/onednn_matmul.h"

namespace backplane::cpu {

// As plan_known_product; a plan without a step where the result's rows are no whole vectors. Input `bias`, where it is
// not -1, is known and has a number for each column.
Plan plan_tiled_product(const KnownProduct& product, std::span<const Tensor> inputs, PackedWeights& packed,
                        int bias = -1);

}  // namespace backplane::cpu
