// SPDX-License-Identifier: Apache-2.0
// Finds ShuffleNet's channel shuffle in the form in which exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses three calls: Reshape from [N, groups · each, …] to [N, groups, each, …], Transpose of `groups` and `each`, and
// Reshape to the first shape. `reshape` is the first call.
void find_channel_shuffle(FusionGraph& graph, uint32_t reshape);

}  // namespace backplane::cpu
