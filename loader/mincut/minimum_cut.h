// SPDX-License-Identifier: Apache-2.0
// Minimum s-t cut of a sparse network.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane {

// Costs of vertices, and of pairs of vertices that are on different sides. Costs of arcs must not be
// negative, and the sum of all costs must stay below 2^62.
struct CutCosts {
  struct Arc {
    uint32_t from, to;
    // cost: with `from` on the source's side and `to` on the sink's. reverse_cost: with the sides exchanged.
    int64_t cost, reverse_cost;
  };
  std::vector<int64_t> sink_cost;  // for each vertex, its extra cost on the sink's side; may be negative
  std::vector<Arc> arcs;

  uint32_t add_vertex();
  void add_cost(uint32_t v, int64_t on_source_side, int64_t on_sink_side);
  void add_arc(uint32_t from, uint32_t to, int64_t cost, int64_t reverse_cost = 0);
};

// Returns a cheapest cut: true for the vertices on the sink's side. Ties go to the source's side. Faster if neighbors
// have close numbers.
//
// First, vertices whose side is obvious and vertices with at most two neighbors are eliminated exactly (eliminate.h).
// That alone solves chains, trees and the series and parallel branches that most models consist of. What remains of the
// network is cut by a maximum flow (residual.h), sent in sweeps over all vertices and then in waves or by push-relabel.
// See docs/decisions/0004-own-minimum-cut.md.
std::vector<bool> minimum_cut(CutCosts costs);

}  // namespace backplane
