// SPDX-License-Identifier: Apache-2.0
// ShuffleNet's channel shuffle, as exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses Reshape of [N, groups · each, …] to [N, groups, each, …], swapping these two dimensions, and Reshape back.
void find_channel_shuffle(FusionGraph& graph, uint32_t reshape);

}  // namespace backplane::cpu
