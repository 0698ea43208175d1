// SPDX-License-Identifier: Apache-2.0
// Looks for the cheapest placement: compute, copies and launches.
#pragma once

#include "place/order.h"

namespace backplane {

struct Solution {
  Labels labels;
  Order order;
  Cost cost;
};

// The placement that `labels` make.
Solution evaluate(const Problem& problem, Labels labels);

// Each node on the first device of the list that can have it. BP_NONE where there is none.
Labels first_that_can(const Problem& problem);

// Candidates are the greedy placement, those that prefer one device, and the minimum cut of compute and copies, which
// is exact for two devices. Launches depend on the order of the islands, so from the cheapest candidates two steps
// alternate as long as they help: the best devices for an order (a minimum cut, launches included), the best order for
// the devices. The result is the cheapest placement seen, hence never dearer than the greedy one or the best single
// device.
//
// `max_islands` 0: no bound. Otherwise launches are weighted more and more until the bound is met; the answer is the
// closest found. Fails only by leaving labels BP_NONE. Bans atomic groups of `problem` that cannot be had together
// without a cycle.
Solution search(Problem& problem, uint32_t max_islands);

// Reduces the islands of a given placement to `max_islands` by the same means, if it can.
Solution reduce(const Problem& problem, Solution start, uint32_t max_islands);

// Bans atomic groups until those that `labels` take close no cycle. True: something was banned, and the labels are
// void.
bool untie(Problem& problem, const Labels& labels);

}  // namespace backplane
