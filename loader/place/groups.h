// SPDX-License-Identifier: Apache-2.0
// Groups of nodes that a device supports only together, or runs faster together. Determines which groups are possible,
// and finds placements that keep atomic groups whole.
#pragma once

#include <functional>

#include "base/status.h"
#include "place/problem.h"

namespace backplane {

// Fills in Problem::groups and group_of, and changes the costs of nodes in atomic groups to shares of the group's cost.
// A group is dropped if it overlaps an earlier group of the device that was not dropped, if the device does not support
// one of its nodes, or if review put its nodes into different parts. The nodes of a dropped atomic group cannot be on
// the device, unless an atomic group of the device that is not dropped contains them. If the graph, with each atomic
// group of the device merged into one node, has cycles (for example because a path leaves a group and returns to it),
// groups on or between the cycles are dropped, each time the later half, until no cycle is left.
void add_groups(const std::vector<DeviceCoverage>& coverage, Problem& problem);

// Returns a placement that keeps every atomic group whole. `preference` returns all devices, in a node's order of
// preference, as an array that is valid until the next call; the node goes to the first device that earlier decisions
// leave open for it. Nodes with only one device left are decided first. The result is BP_NONE for nodes for which no
// device is left.
Assignment assign(const Problem& problem, const std::function<const uint32_t*(uint32_t node)>& preference);

}  // namespace backplane
