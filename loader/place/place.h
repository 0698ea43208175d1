// SPDX-License-Identifier: Apache-2.0
// Which device runs which node, and the islands that follow.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "coverage/coverage.h"
#include "ir/graph.h"
#include "place/saving.h"

namespace backplane {

// What the user asks of a placement, as in bp_session_desc_t.
struct Policy {
  uint32_t fallback = BP_FALLBACK_ALLOW;
  uint32_t max_islands = 0;       // 0: no bound
  uint32_t max_island_nodes = 0;  // likewise
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
  double seconds = 0;                   // of its nodes; launching it comes on top
  double launch_seconds = 0;
};

// A value that passes between the memories of devices.
struct Copy {
  model::ValueId value;
  uint32_t from, to;      // positions in the coverage's list, or BP_NONE: the host
  double seconds, bytes;  // both expected: open extents count as in place/cost.h
  Source source;
};

// A node that a device would have and has no memory for.
struct NoRoom {
  uint32_t node, device;
  auto operator<=>(const NoRoom&) const = default;
};

struct Placement {
  std::vector<uint32_t> device;  // of each node: position in the coverage's list
  std::vector<uint32_t> island;  // of each node
  std::vector<std::string> pin;  // of each node: the pattern that put it there, or empty
  std::vector<Island> islands;   // in an order in which they can run
  std::vector<Copy> copies;      // not those that are free
  std::vector<double> seconds;   // node * devices + device: expected; infinite where it can't be
  std::vector<Saving> savings;
  std::vector<NoRoom> no_room;  // ascending
  Cost cost;
};

// BP_FALLBACK_ALLOW: the cheapest placement that is found (search.h). PREFER: the first device of the list that can
// takes a node. FORBID: the first device must take all. Pins count in each. An atomic group is taken whole or not at
// all.
//
// With `max_islands`, islands are given up to other devices until they fit, in ALLOW and PREFER. With
// `max_island_nodes`, larger islands are cut; an atomic group may be larger. A device that tells how much memory it has
// gets no more than it holds (limits.h). Errors: BP_UNSUPPORTED (nobody takes a node; too many islands), BP_NOT_FOUND
// (the device of a pin), BP_RESOURCE_EXHAUSTED. The same input gives the same placement.
Result<Placement> place(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage, const Policy& policy);

// Shell-style match: * any run of characters, ? one.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace backplane
