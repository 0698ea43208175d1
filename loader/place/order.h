// SPDX-License-Identifier: Apache-2.0
// From devices of nodes to islands.
#pragma once

#include "place/problem.h"

namespace backplane {

// Islands in an order in which they can run: each reads only what earlier ones made. That such an order exists is what
// convex and acyclic mean together.
struct Order {
  std::vector<uint32_t> sequence;  // the nodes, island by island
  std::vector<uint32_t> island;    // of each node
  std::vector<uint32_t> devices;   // of each island
};

// The nodes of one device and part that are ready run together, then what they made ready, until nothing of theirs is
// left; that is an island. Next comes the owner whose ready nodes have the most changes of device and part between them
// and the end, of equals the one with the cheaper launch. With two owners no order has fewer islands. Groups that are
// taken whole (the labels take each whole or not at all, and cyclic_groups is empty) stay together. n log n.
Order arrange(const Problem& problem, const Labels& labels);

// The atomic groups that would close a cycle, ascending, if each that has all its nodes on its device were one node.
// Those that only lie between cycles are among them. Empty where `arrange` finds an order.
std::vector<uint32_t> cyclic_groups(const Problem& problem, const Labels& labels);

// Whether a group's nodes are all on its device in one island.
bool together(const Problem::Group& group, const Labels& labels, const Order& order);

// What a placement costs, launches by its order included.
struct Cost {
  double compute = 0, copies = 0, launches = 0;
  uint32_t islands = 0;
  double total() const { return compute + copies + launches; }
};
Cost cost_of(const Problem& problem, const Labels& labels, const Order& order);

// Calls visit(link, device or host, seconds) for each copy of the placement.
template <class Visit>
void for_each_copy(const Problem& problem, const Labels& labels, const Visit& visit) {
  std::vector<bool> there(problem.devices + 1);
  for (const Problem::Link& link : problem.links) {
    const uint32_t home = link.producer == BP_NONE ? problem.host() : labels[link.producer];
    there.assign(problem.devices + 1, false);
    there[home] = true;
    const auto arrive = [&](uint32_t place) {
      if (there[place]) return;
      there[place] = true;
      visit(link, place, problem.copy(home, place, link.bytes));
    };
    for (uint32_t reader : problem.readers_of(link)) arrive(labels[reader]);
    if (link.to_host) arrive(problem.host());
  }
}

}  // namespace backplane
