// SPDX-License-Identifier: Apache-2.0
// Finds attention in the form in which exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses a Softmax with the scaled product of queries and keys before it, the mask that may be added to that, the
// product with the values after it, and the transpositions around these.
void find_attention(FusionGraph& graph, uint32_t softmax);

}  // namespace backplane::cpu
