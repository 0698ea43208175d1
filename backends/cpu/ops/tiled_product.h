// SPDX-License-Identifier: Apache-2.0
// A product of rows with a known matrix as tiles (ops/tiled.h).
#pragma once

#include "ops/onednn_matmul.h"

namespace backplane::cpu {

// As plan_known_product; a plan without a step where the result's rows are no whole vectors.
Plan plan_tiled_product(const KnownProduct& product, std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
