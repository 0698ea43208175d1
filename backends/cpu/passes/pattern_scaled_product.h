// SPDX-License-Identifier: Apache-2.0
// Scaled integer products, as dynamic quantization writes them.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// MatMulInteger or ConvInteger: followed by Cast to float and Mul by a scale, as dynamic quantization writes them.
// Returns the call that replaces all three, or BP_NONE.
uint32_t find_scaled_product(FusionGraph& graph, uint32_t product);

}  // namespace backplane::cpu
