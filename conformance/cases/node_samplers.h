// SPDX-License-Identifier: Apache-2.0
// The operators that random graphs contain.
#pragma once

#include <cstdint>
#include <span>

#include "cases/graph_sampler.h"

namespace backplane::conform {

// Draws one node; false if the graph has no suitable values.
struct NodeSampler {
  bool (*make)(GraphSampler& sampler);
  uint32_t weight;  // how often it is drawn, relative to the others
  bool linear;      // in the sense of Recipe
};
std::span<const NodeSampler> node_samplers();

}  // namespace backplane::conform
