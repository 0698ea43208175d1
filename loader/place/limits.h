// SPDX-License-Identifier: Apache-2.0
// Limits on the use of a device's memory, and on the size of islands.
#pragma once

#include "base/status.h"
#include "place/place.h"
#include "place/search.h"

namespace backplane {

class MemoryLimits {
 public:
  MemoryLimits(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage);

  // Whether every device with its own memory can hold the weights of its nodes, each once, plus the inputs, outputs and
  // scratch of its largest node, where extents that are known only at run time have their lower bounds. If a device
  // cannot, the result is false and `assignment` is no longer valid: those of its nodes that do not fit and that
  // another device supports become impossible on it and are added to `no_room`. BP_RESOURCE_EXHAUSTED if no other
  // device supports any of them.
  Result<bool> hold(Problem& problem, const Assignment& assignment, std::vector<NoRoom>& no_room) const;

 private:
  const model::Graph& graph_;
  const std::vector<DeviceCoverage>& coverage_;
  bool bounded_ = false;  // whether any device reports the size of its memory
};

// Cuts islands of more than `max_nodes` nodes into several consecutive islands. Atomic groups stay whole, so an island
// that contains one may be larger.
void limit_islands(const Problem& problem, uint32_t max_nodes, Solution& found);

}  // namespace backplane
