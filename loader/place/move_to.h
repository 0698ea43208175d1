// SPDX-License-Identifier: Apache-2.0
// Finds the nodes that should move to a given device, by a minimum cut.
#pragma once

#include "place/problem.h"

namespace backplane {

// Returns the cheapest placement in which every node either keeps its device or moves to `target`. Costs are compute,
// and copies: each value once for each device that reads it. Nodes that cannot run on `target` keep their device.
// Atomic groups of `target`, and groups that are on their device, stay or move as a whole.
//
// If `sequence` is given (an order of the nodes, see order.h), launches count too. Each run of consecutive nodes of one
// device in that order counts as at least one launch, times `launch_weight`.
//
// Of the nodes that can move, those with the same number in `together` all move or all stay, which makes the cut
// smaller. Numbers are less than the number of nodes, or BP_NONE for nodes that decide alone.
//
// The result is exact if every node is on `target` or on one other device. With two devices, start with as many nodes
// as possible on one and move to the other. With more devices, the cost of copies to a third device is overestimated
// for some moves and never underestimated, so no move is worse than its estimate.
Assignment move_to(const Problem& problem, const Assignment& assignment, uint32_t target,
                   const std::vector<uint32_t>& sequence = {}, double launch_weight = 0,
                   const std::vector<uint32_t>& together = {});

}  // namespace backplane
