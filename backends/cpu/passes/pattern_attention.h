// SPDX-License-Identifier: Apache-2.0
// Attention, as exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses Softmax with the scaled product of queries and keys before it (perhaps with a mask added), the product with the
// values after it, and the transpositions around them.
void find_attention(FusionGraph& graph, uint32_t softmax);

}  // namespace backplane::cpu
