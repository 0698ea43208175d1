// SPDX-License-Identifier: Apache-2.0
// Groups of nodes that a device supports only together. Determines which groups are possible, and finds placements that
// keep them whole.
#pragma once

#include <functional>

#include "base/status.h"
#include "place/problem.h"

namespace backplane {

// Fills in Problem::groups. Of overlapping groups of a device, only the first listed is used. An atomic group is
// dropped, so that its nodes cannot be on the device, in three cases: the device does not support one of the nodes;
// review put the nodes into different parts; or the graph, with each group of the device merged into one node, has a
// cycle through the group, for example because a path leaves the group and returns to it.
void add_groups(const std::vector<DeviceCoverage>& coverage, Problem& problem);

// Returns a placement that keeps every atomic group whole. `preference` returns all devices, in a node's order of
// preference; the node goes to the first device that earlier decisions leave open for it. Nodes with only one device
// left are decided first. The result is BP_NONE for nodes without any device.
Assignment assign(const Problem& problem, const std::function<const uint32_t*(uint32_t node)>& preference);

}  // namespace backplane
