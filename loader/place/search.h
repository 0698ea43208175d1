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

// Returns an assignment with its order and cost. Every node must have a device.
Solution evaluate(const Problem& problem, Assignment assignment);

// The greedy placement: each node on the first listed device that supports it, or BP_NONE if none does.
Assignment first_that_can(const Problem& problem);

// Searches for the cheapest placement. Candidates are the greedy placement, those that prefer one device, with more
// than two devices the one with each node on its cheapest device, and the minimum cut of compute and copies, which is
// exact for two devices. Launches depend on the order of the islands.
// Therefore, starting from the cheapest candidates, two steps alternate as long as they help: finding the best devices
// for an order (a minimum cut that includes launches), and finding the best order for the devices. The number of rounds
// is limited, more so for large graphs. The result is the cheapest placement seen: without a limit on islands, it never
// costs more than the greedy placement or the best single device.
//
// `max_islands` 0 means no limit. Otherwise, the weight of launches increases until the limit is met; if it cannot be
// met, the result is the closest placement found. If no device supports some of the nodes, the result is the greedy
// placement, in which these nodes are BP_NONE, without order and cost. Bans atomic groups of `problem` that together
// close a cycle.
Solution search(Problem& problem, uint32_t max_islands);

// Reduces the islands of a given placement to `max_islands` in the same way, if possible.
Solution reduce(const Problem& problem, Solution start, uint32_t max_islands);

// If atomic groups that `assignment` keeps whole close a cycle, bans the later half of them and returns true. The
// assignment is then no longer valid: the caller makes a new one, which may need the same check again.
bool break_cycles(Problem& problem, const Assignment& assignment);

}  // namespace backplane
