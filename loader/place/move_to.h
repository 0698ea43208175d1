// SPDX-License-Identifier: Apache-2.0
// Which nodes had better run on one given device: a minimum cut.
#pragma once

#include "place/problem.h"

namespace backplane {

// The cheapest placement in which every node either keeps its device or moves to `target`: compute, and copies, each
// value once for each device that reads it. Nodes that can't run on `target` keep theirs; atomic groups that hold and
// atomic groups of `target` are kept, left or taken whole.
//
// With an order of the nodes (see order.h), launches count too, as if islands were runs of one device in that order: at
// least one for each such run, times `launch_weight`.
//
// Nodes for which `together` has the same number other than BP_NONE move together or not at all, if they can: a smaller
// cut, where it is known what will not be taken apart.
//
// Exact where every node is either on `target` or on one other device, so for two devices: start from a placement on
// the one wherever possible and move to the other. With more, what it costs that a value has to go to a third device is
// overestimated for some moves, never for keeping, so that no move is worse than it looks.
Labels move_to(const Problem& problem, const Labels& labels, uint32_t target,
               const std::vector<uint32_t>& sequence = {}, double launch_weight = 0,
               const std::vector<uint32_t>& together = {});

}  // namespace backplane
