// SPDX-License-Identifier: Apache-2.0
// The operators that random graphs contain.
#pragma once

#include <cstdint>
#include <span>

#include "cases/graph_sampler.h"

namespace backplane::conform {

// Adds one random node. `make` returns false if the graph has no suitable values.
struct NodeSampler {
  bool (*make)(GraphSampler& sampler);
  uint32_t weight;  // how often it is drawn, relative to the others
  bool linear;      // may be used where Recipe::linear is set
};
std::span<const NodeSampler> node_samplers();

}  // namespace backplane::conform
