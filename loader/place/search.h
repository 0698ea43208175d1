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

// The order and cost of an assignment.
Solution evaluate(const Problem& problem, Assignment assignment);

// Each node on the first device of the list that supports it. BP_NONE where none does.
Assignment first_that_can(const Problem& problem);

// Candidates are the greedy placement, those that prefer one device, and the minimum cut of compute and copies, which
// is exact for two devices. Launches depend on the order of the islands, so from the cheapest candidates two steps
// alternate as long as they help: the best devices for an order (a minimum cut, launches included), the best order for
// the devices. The result is the cheapest placement seen, hence never more expensive than the greedy one or the best
// single device.
//
// `max_islands` 0: no bound. Otherwise launches are weighted more and more until the bound is met; the result is the
// closest found. Nodes that no device supports are BP_NONE in the result. Bans atomic groups of `problem` that together
// close a cycle.
Solution search(Problem& problem, uint32_t max_islands);

// Reduces the islands of a given placement to `max_islands` by the same means, if it can.
Solution reduce(const Problem& problem, Solution start, uint32_t max_islands);

// Bans atomic groups until those that `assignment` keeps whole close no cycle. True: some were banned, and the
// assignment is no longer valid.
bool break_cycles(Problem& problem, const Assignment& assignment);

}  // namespace backplane
