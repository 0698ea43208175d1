// SPDX-License-Identifier: Apache-2.0
// Finds the nodes that should move to a given device, by a minimum cut.
#pragma once

#include "place/problem.h"

namespace backplane {

// The cheapest placement in which every node either keeps its device or moves to `target`: compute, and copies, each
// value once for each device that reads it. Nodes that cannot run on `target` keep their device; atomic groups that are
// on their device, and those of `target`, stay or move as a whole.
//
// If `sequence` (an order of the nodes, see order.h) is given, launches count too, as if islands were runs of one
// device's nodes in that order: at least one launch for each such run, times `launch_weight`.
//
// Nodes with the same number in `together` (except BP_NONE) move together or not at all, which makes the cut smaller.
//
// Exact if every node is either on `target` or on one other device, hence for two devices: start with as many nodes as
// possible on one, and move to the other. With more devices the cost of copies to a third one is overestimated for
// some moves and never underestimated, so no move is worse than its estimate.
Assignment move_to(const Problem& problem, const Assignment& assignment, uint32_t target,
                   const std::vector<uint32_t>& sequence = {}, double launch_weight = 0,
                   const std::vector<uint32_t>& together = {});

}  // namespace backplane
