// SPDX-License-Identifier: Apache-2.0
// Attention, as exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Softmax: of scaled products of queries and keys, perhaps with a mask added, times values; with the transpositions
// around it.
void find_attention(FusionGraph& graph, uint32_t softmax);

}  // namespace backplane::cpu
