// SPDX-License-Identifier: Apache-2.0
// What a device can hold, and how large an island may be.
#pragma once

#include "base/status.h"
#include "place/place.h"
#include "place/search.h"

namespace backplane {

class MemoryLimits {
 public:
  MemoryLimits(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage);

  // Whether every device with a memory of its own holds the weights of its nodes, each once, and the inputs, outputs
  // and scratch of the largest of them beside. Where one does not, the nodes that come last in the graph and that
  // another device can have are made impossible on it and listed (false: `labels` are void). BP_RESOURCE_EXHAUSTED
  // where that does not help.
  Result<bool> hold(Problem& problem, const Labels& labels, std::vector<NoRoom>& no_room) const;

 private:
  const model::Graph& graph_;
  const std::vector<DeviceCoverage>& coverage_;
  bool bounded_ = false;  // some device tells what it has
};

// Cuts islands of more nodes into pieces that run one after the other; groups that are taken whole stay whole.
void limit_islands(const Problem& problem, uint32_t max_nodes, Solution& found);

}  // namespace backplane
