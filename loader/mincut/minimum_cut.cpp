// SPDX-License-Identifier: Apache-2.0
#include "mincut/minimum_cut.h"

#include <algorithm>

#include "mincut/eliminate.h"
#include "mincut/push_relabel.h"
#include "mincut/residual.h"
#include "mincut/sweep.h"
#include "mincut/wave.h"

namespace backplane {

uint32_t CutCosts::add_vertex() {
  sink_cost.push_back(0);
  return static_cast<uint32_t>(sink_cost.size() - 1);
}

void CutCosts::add_cost(uint32_t v, int64_t on_source_side, int64_t on_sink_side) {
  // A cost that applies on both sides does not affect which cut is cheapest.
  sink_cost[v] += on_sink_side - on_source_side;
}

void CutCosts::add_arc(uint32_t from, uint32_t to, int64_t cost, int64_t reverse_cost) {
  if (from != to && (cost > 0 || reverse_cost > 0)) arcs.push_back({from, to, cost, reverse_cost});
}

namespace {

// Whether one of source and sink has less than a quarter of the other's flow left to send. Then all of the smaller
// amount can probably arrive.
bool lopsided(const Residual& network) {
  const auto [less, more] = std::minmax({network.unsent(), network.unsent_to_sink()});
  return less < more / 4;
}

}  // namespace

std::vector<bool> minimum_cut(CutCosts costs) {
  Elimination elimination(std::move(costs));
  Residual network(elimination.rest());
  send_in_sweeps(network);
  lopsided(network) ? send_by_push_relabel(network) : send_in_waves(network);
  return elimination.complete(reaches_sink(network));
}

}  // namespace backplane
