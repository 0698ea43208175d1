// SPDX-License-Identifier: Apache-2.0
// Groups of nodes that a device supports only together: which of them are possible, and placements that keep them
// whole.
#pragma once

#include <functional>

#include "base/status.h"
#include "place/problem.h"

namespace backplane {

// Fills in Problem::groups. Where groups of a device overlap, the first listed counts. An atomic group is left out, and
// its nodes cannot be on the device, where one of them is unsupported, where review put them into different parts, or
// where the group as one node would close a cycle: a path leaves it and comes back.
void add_groups(const std::vector<DeviceCoverage>& coverage, Problem& problem);

// A placement that keeps every atomic group whole: each node goes to the first device that earlier decisions leave open
// for it, in the order of `preference` (`devices` positions from the returned pointer). Nodes with one choice left are
// decided first. BP_NONE for nodes without a choice.
Assignment assign(const Problem& problem, const std::function<const uint32_t*(uint32_t node)>& preference);

}  // namespace backplane
