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

// Searches for the cheapest placement. Candidates are the greedy placement, those that prefer one device, with more
// than two devices the one with each node on its cheapest device, and the minimum cut of compute and copies, which is
// exact for two devices. Launches depend on the order of the islands.
// Therefore, starting from the cheapest candidates, two steps alternate as long as they help: finding the best devices
// for an order (a minimum cut that includes launches), and finding the best order for the devices. The result is the
// cheapest placement seen, so it never costs more than the greedy placement or the best single device.
//
// `max_islands` 0 means no limit. Otherwise, the weight of launches increases until the limit is met; if it cannot be
// met, the result is the closest placement found. Nodes that no device supports are BP_NONE in the result. Bans atomic
// groups of `problem` that together close a cycle.
Solution search(Problem& problem, uint32_t max_islands);

// Reduces the islands of a given placement to `max_islands` in the same way, if possible.
Solution reduce(const Problem& problem, Solution start, uint32_t max_islands);

// Bans atomic groups until the groups that `assignment` keeps whole close no cycle. Returns true if any were banned;
// the assignment is then no longer valid.
bool break_cycles(Problem& problem, const Assignment& assignment);

}  // namespace backplane
