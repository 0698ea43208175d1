// SPDX-License-Identifier: Apache-2.0
// Arranges nodes, given their devices, into islands.
#pragma once

#include "place/problem.h"

namespace backplane {

// The islands in an order in which they can run: each reads only graph inputs, weights and values that earlier islands
// wrote. Such an order exists because islands are convex and the graph of islands is acyclic.
struct Order {
  std::vector<uint32_t> sequence;  // the nodes, island by island
  std::vector<uint32_t> island;    // by node: the index of its island
  std::vector<uint32_t> devices;   // by island: its device
};

// Forms islands. An owner is a device and a part (from review). An island starts with all ready nodes of one owner and
// grows by that owner's nodes that become ready, until there are none. The next owner is the one whose ready nodes have
// the most owner changes on a path to the end of the graph; on a tie, the one with the cheaper launch. With two owners,
// no order has fewer islands. Atomic groups stay together. Every node must have a device, the assignment must keep
// atomic groups whole, and cyclic_groups must be empty. O(n log n).
Order arrange(const Problem& problem, const Assignment& assignment);

// Returns the atomic groups on cycles, in ascending order, when each group whose nodes are all on its device counts as
// one node. Includes groups that only lie between cycles. Empty if `arrange` can find an order.
std::vector<uint32_t> cyclic_groups(const Problem& problem, const Assignment& assignment);

// Whether all nodes of a group are on its device and in one island.
bool together(const Problem::Group& group, const Assignment& assignment, const Order& order);

// The cost of a placement whose islands run in a given order: computing, copies, and a launch per island.
struct Cost {
  double compute = 0, copies = 0, launches = 0;
  uint32_t islands = 0;
  double total() const { return compute + copies + launches; }
};
Cost cost_of(const Problem& problem, const Assignment& assignment, const Order& order);

// Calls visit(link, to, seconds) for each copy of the placement. `to` is a device or problem.host().
template <class Visit>
void for_each_copy(const Problem& problem, const Assignment& assignment, const Visit& visit) {
  std::vector<bool> there(problem.devices + 1);
  for (const Problem::Link& link : problem.links) {
    const uint32_t origin = link.producer == BP_NONE ? problem.host() : assignment[link.producer];
    there.assign(problem.devices + 1, false);
    there[origin] = true;
    const auto arrive = [&](uint32_t place) {
      if (there[place]) return;
      there[place] = true;
      visit(link, place, problem.copy(origin, place, link.bytes));
    };
    for (uint32_t reader : problem.readers_of(link)) arrive(assignment[reader]);
    if (link.to_host) arrive(problem.host());
  }
}

}  // namespace backplane
