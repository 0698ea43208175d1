// SPDX-License-Identifier: Apache-2.0
// Operators that exporters write as several nodes, found again: each looks at the call where its pattern begins, and
// leaves the graph as it is where the rest does not follow.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Reshape: [N, groups · each, …] as [N, groups, each, …], those two swapped, and back.
void find_channel_shuffle(FusionGraph& graph, uint32_t reshape);

// ReduceMean: (x - mean) / sqrt(variance + epsilon) · scale + bias over the last axis.
void find_layer_norm(FusionGraph& graph, uint32_t mean);

// Softmax: of scaled products of queries and keys, perhaps with a mask added, times values; with the transpositions
// around it.
void find_attention(FusionGraph& graph, uint32_t softmax);

// MatMulInteger or ConvInteger: Cast to float and Mul by a scale behind it, as dynamic quantization has it. The call
// that does all of it from now on, or BP_NONE.
uint32_t find_scaled_product(FusionGraph& graph, uint32_t product);

}  // namespace backplane::cpu
