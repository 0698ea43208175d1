// SPDX-License-Identifier: Apache-2.0
// Scaled integer products, as dynamic quantization writes them.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// MatMulInteger or ConvInteger: Cast to float and Mul by a scale behind it, as dynamic quantization has it. The call
// that does all of it from now on, or BP_NONE.
uint32_t find_scaled_product(FusionGraph& graph, uint32_t product);

}  // namespace backplane::cpu
