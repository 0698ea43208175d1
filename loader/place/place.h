// SPDX-License-Identifier: Apache-2.0
// Decides which device runs which node, and which nodes form islands.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "coverage/coverage.h"
#include "ir/graph.h"
#include "place/missed_speedup.h"

namespace backplane {

// The framework's requirements, as in bp_session_desc_t.
struct Policy {
  uint32_t fallback = BP_FALLBACK_ALLOW;
  uint32_t max_islands = 0;       // 0: no limit
  uint32_t max_island_nodes = 0;  // 0: no limit
  struct Pin {
    std::string pattern, device;
    Status lost = {};  // the error if the device was abandoned and is therefore not in the coverage list
  };
  std::vector<Pin> pins;
};

// Limits at which place() stops early and returns an error.
struct PlaceLimits {
  Budget* budget = nullptr;         // null: no limit
  std::function<bool()> cancelled;  // empty: cannot be cancelled
};

// A convex set of nodes on one device.
struct Island {
  uint32_t device = 0;                  // index in the coverage list
  std::vector<uint32_t> nodes;          // ascending
  std::vector<model::ValueId> inputs;   // without constants; in the order of their first readers
  std::vector<model::ValueId> outputs;  // values that other islands read or that are outputs of the graph
  double seconds = 0;                   // expected time of its nodes, without the launch
  double launch_seconds = 0;
};

// A value that is copied from the memory of a device or of the host to another one.
struct Copy {
  model::ValueId value;
  uint32_t from, to;      // indices in the coverage list, or BP_NONE: the host
  double seconds, bytes;  // estimates; place/cost.h says how unknown dimensions count
  Source source;
};

// A node that the device supports, but for which its memory has no room.
struct NoRoom {
  uint32_t node, device;
  auto operator<=>(const NoRoom&) const = default;
};

struct Placement {
  std::vector<uint32_t> device;  // by node: index in the coverage list
  std::vector<uint32_t> island;  // by node
  std::vector<std::string> pin;  // by node: the pattern that pins it, or empty
  std::vector<Island> islands;   // in an order in which they can run
  std::vector<Copy> copies;      // without copies that cost nothing
  std::vector<double> seconds;   // [node * devices + device]: expected time; infinite if impossible
  std::vector<MissedSpeedup> missed_speedups;
  std::vector<NoRoom> no_room;  // ascending
  Cost cost;
};

// Places the graph by `policy`:
// - BP_FALLBACK_ALLOW: the cheapest placement found (search.h).
// - BP_FALLBACK_PREFER: each node runs on the first listed device that supports it.
// - BP_FALLBACK_FORBID: the first device must run all nodes that have no pin.
// A pinned node runs on the device of its pin in all three cases. Atomic groups stay whole.
//
// If there are more than `max_islands` islands, ALLOW and PREFER move nodes to other devices. Islands of more than
// `max_island_nodes` nodes are cut, but atomic groups stay whole. A device that reports the size of its own memory gets
// no more nodes than fit there (limits.h). Errors: BP_UNSUPPORTED (no device supports a node, or the device of its pin
// does not; more than `max_islands` islands are needed), BP_NOT_FOUND (a pin names a device that is not listed),
// BP_DEVICE_LOST (a pin names a device that was abandoned), BP_RESOURCE_EXHAUSTED (too little memory on a device, or
// more than `limits` allows), BP_TIMED_OUT, BP_CANCELLED. Deterministic.
Result<Placement> place(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage, const Policy& policy,
                        const PlaceLimits& limits = {});

}  // namespace backplane
