// SPDX-License-Identifier: Apache-2.0
// Finds scaled integer products, which occur in dynamically quantized models.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses a MatMulInteger, or a ConvInteger with known weights, with the Cast to float and the Mul by a scale after it; a
// ConvInteger also with an Add of one integer per channel before the Cast. Returns the call that replaces them, or
// BP_NONE if the pattern does not match.
uint32_t find_scaled_product(FusionGraph& graph, uint32_t product);

}  // namespace backplane::cpu
