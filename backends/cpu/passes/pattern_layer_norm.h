// SPDX-License-Identifier: Apache-2.0
// Finds layer normalization in the form in which exporters write it.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

// Fuses (x - mean) / sqrt(variance + epsilon) · scale + bias over the last axis. `mean` is the ReduceMean that computes
// the mean.
void find_layer_norm(FusionGraph& graph, uint32_t mean);

}  // namespace backplane::cpu
