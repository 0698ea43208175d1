// SPDX-License-Identifier: Apache-2.0
// Which device runs which node, and the islands that follow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coverage/coverage.h"
#include "model/graph.h"
#include "status.h"

namespace backplane {

// What the user asks of a placement, as in bp_session_desc_t.
struct Policy {
  uint32_t fallback = BP_FALLBACK_ALLOW;
  uint32_t max_islands = 0;
  struct Pin {
    std::string pattern, device;
  };
  std::vector<Pin> pins;
};

// A convex set of nodes on one device.
struct Island {
  uint32_t device = 0;                  // position in the coverage's list
  std::vector<uint32_t> nodes;          // ascending
  std::vector<model::ValueId> inputs;   // not constants; in the order in which the island's view has them
  std::vector<model::ValueId> outputs;  // read by other islands or by the graph's outputs
};

struct Placement {
  std::vector<uint32_t> device;   // of each node: position in the coverage's list
  std::vector<uint32_t> island;   // of each node
  std::vector<uint32_t> part;     // of each node: nodes of one device with different parts never share an island
  std::vector<std::string> pin;   // of each node: the pattern that put it there, or empty
  std::vector<Island> islands;    // in an order in which they can run
};

// The first device of the list that takes a node gets it (BP_FALLBACK_FORBID: the first device must take all; with ALLOW and
// PREFER the list's order is the preference). Then the islands: linear in the size of the graph.
// `parts` has a number for each node, or is empty.
Result<Placement> place(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage, const Policy& policy,
                        const std::vector<uint32_t>& parts);

// Shell-style match: * any run of characters, ? one.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace backplane
