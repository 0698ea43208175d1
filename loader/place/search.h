// SPDX-License-Identifier: Apache-2.0
// Searches for the cheapest placement: compute, copies and launches.
#pragma once

#include "place/order.h"

namespace backplane {

struct Solution {
  Assignment assignment;
  Order order;
  Cost cost;
};

// Returns an assignment with its order and cost.
Solution evaluate(const Problem& problem, Assignment assignment);

// Puts each node on the first listed device that supports it; BP_NONE if none does.
Assignment first_that_can(const Problem& problem);

// Candidates are the greedy placement, those that prefer one device, and the minimum cut of compute and copies, which
// is exact for two devices. Launches depend on the order of the islands, so from the cheapest candidates two steps
// alternate as long as they help: the best devices for an order (a minimum cut, launches included), the best order for
// the devices. The result is the cheapest placement seen, hence never more expensive than the greedy one or the best
// single device.
//
// `max_islands` 0: no limit. Otherwise launches get more and more weight until the limit is met; the result is the
// closest found. Nodes that no device supports are BP_NONE in the result. Bans atomic groups of `problem` that together
// close a cycle.
Solution search(Problem& problem, uint32_t max_islands);

// Reduces the islands of a given placement to `max_islands` in the same way, if possible.
Solution reduce(const Problem& problem, Solution start, uint32_t max_islands);

// Bans atomic groups until those that `assignment` keeps whole close no cycle. True: some were banned, and the
// assignment is no longer valid.
bool break_cycles(Problem& problem, const Assignment& assignment);

}  // namespace backplane
