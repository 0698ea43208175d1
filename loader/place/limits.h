// SPDX-License-Identifier: Apache-2.0
// Limits of a device's memory, and of the size of islands.
#pragma once

#include "base/status.h"
#include "place/place.h"
#include "place/search.h"

namespace backplane {

class MemoryLimits {
 public:
  MemoryLimits(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage);

  // Whether every device with a memory of its own can hold the weights of its nodes, each once, plus the inputs,
  // outputs and scratch of the largest node. Where one cannot, the last nodes of the graph that another device supports
  // are made impossible on it and listed; then the result is false and `assignment` is no longer valid.
  // BP_RESOURCE_EXHAUSTED where no node can be moved.
  Result<bool> hold(Problem& problem, const Assignment& assignment, std::vector<NoRoom>& no_room) const;

 private:
  const model::Graph& graph_;
  const std::vector<DeviceCoverage>& coverage_;
  bool bounded_ = false;  // some device reports the size of its memory
};

// Cuts islands of more than `max_nodes` nodes into pieces that run one after the other; atomic groups stay whole.
void limit_islands(const Problem& problem, uint32_t max_nodes, Solution& found);

}  // namespace backplane
