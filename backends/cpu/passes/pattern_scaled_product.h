// SPDX-License-Identifier: Apache-2.0
// Scaled integer products, as in dynamically quantized models.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses MatMulInteger or ConvInteger with the Cast to float and Mul by a scale that follow it. Returns the call that
// replaces all three, or BP_NONE if they do not follow.
uint32_t find_scaled_product(FusionGraph& graph, uint32_t product);

}  // namespace backplane::cpu
