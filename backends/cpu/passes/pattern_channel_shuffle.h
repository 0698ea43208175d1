// SPDX-License-Identifier: Apache-2.0
// ShuffleNet's channel shuffle, as exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Reshape: [N, groups · each, …] as [N, groups, each, …], these two dimensions swapped, and back.
void find_channel_shuffle(FusionGraph& graph, uint32_t reshape);

}  // namespace backplane::cpu
