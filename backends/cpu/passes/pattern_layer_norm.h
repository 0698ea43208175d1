// SPDX-License-Identifier: Apache-2.0
// Layer normalization, as exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// ReduceMean: (x - mean) / sqrt(variance + epsilon) · scale + bias over the last axis.
void find_layer_norm(FusionGraph& graph, uint32_t mean);

}  // namespace backplane::cpu
