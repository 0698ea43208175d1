// SPDX-License-Identifier: Apache-2.0
// Groups of nodes that a device supports only together: determines which are possible, and finds placements that keep
// them whole.
#pragma once

#include <functional>

#include "base/status.h"
#include "place/problem.h"

namespace backplane {

// Fills in Problem::groups. Of overlapping groups of a device, only the first listed is used. An atomic group is
// dropped, and its nodes cannot be on the device, if the device does not support one of them, if review put them into
// different parts, or if the group as one node would close a cycle: a path that leaves the group and returns to it.
void add_groups(const std::vector<DeviceCoverage>& coverage, Problem& problem);

// A placement that keeps every atomic group whole. `preference` returns all devices in a node's order of preference;
// the node goes to the first that earlier decisions leave open for it. Nodes with one choice left are decided first.
// BP_NONE for nodes without a choice.
Assignment assign(const Problem& problem, const std::function<const uint32_t*(uint32_t node)>& preference);

}  // namespace backplane
