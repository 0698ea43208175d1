// SPDX-License-Identifier: Apache-2.0
// Finds attention in the form in which exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses a Softmax with the scaled product of queries and keys before it, the optional mask between the two, the product
// with the values after it, and the Transposes and constant factors of the operands and the Transpose of the result.
void find_attention(FusionGraph& graph, uint32_t softmax);

}  // namespace backplane::cpu
