// SPDX-License-Identifier: Apache-2.0
#include "mincut/sweep.h"

#include <algorithm>

namespace backplane {
namespace {

// Moves each vertex's excess, or its demand (capacity to the sink), to neighbors with lower numbers (`to_front`) or
// higher ones, as far as capacities allow and in proportion to them. This spreads the flow over all paths. Where excess
// meets demand, they cancel.
void sweep(Residual& network, bool to_front) {
  for (uint32_t k = 0; k < network.count; ++k) {
    const uint32_t v = to_front ? network.count - 1 - k : k;
    int64_t balance = network.excess[v] - network.to_sink[v];
    if (balance == 0) continue;
    const bool has_excess = balance > 0;
    const auto left = [&](const Residual::Arc& arc) {
      if ((arc.head < v) != to_front) return int64_t{0};
      return has_excess ? arc.left : network.arcs[arc.twin].left;
    };
    int64_t total = 0;
    for (uint32_t a = network.first[v]; a < network.first[v + 1]; ++a) total += left(network.arcs[a]);
    for (uint32_t a = network.first[v]; a < network.first[v + 1] && balance != 0; ++a) {
      Residual::Arc& arc = network.arcs[a];
      const int64_t most = left(arc), needed = std::abs(balance);
      if (most == 0) continue;
      int64_t amount = std::min(most, needed);
      if (needed < total && most < total)
        amount = std::min(amount, 1 + static_cast<int64_t>(static_cast<double>(needed) * static_cast<double>(most) /
                                                           static_cast<double>(total)));
      total -= most;
      if (!has_excess) amount = -amount;
      arc.left -= amount, network.arcs[arc.twin].left += amount;
      balance -= amount;
      const int64_t there = network.excess[arc.head] - network.to_sink[arc.head] + amount;
      network.excess[arc.head] = std::max<int64_t>(0, there);
      network.to_sink[arc.head] = std::max<int64_t>(0, -there);
    }
    network.excess[v] = std::max<int64_t>(0, balance);
    network.to_sink[v] = std::max<int64_t>(0, -balance);
  }
}

int64_t uncancelled(const Residual& network) {
  return std::min(network.unsent(), network.unsent_to_sink());
}

}  // namespace

void send_in_sweeps(Residual& network) {
  for (int64_t left = uncancelled(network), before = 0; left > 0; left = uncancelled(network)) {
    if (before != 0 && left > before / 4 * 3) return;
    before = left;
    sweep(network, true);
    sweep(network, false);
  }
}

}  // namespace backplane
