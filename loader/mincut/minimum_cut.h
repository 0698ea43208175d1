// SPDX-License-Identifier: Apache-2.0
// Minimum s-t cut of a sparse network.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane {

// Costs of vertices and of pairs of vertices that are on different sides. Their sum stays below 2^62.
struct CutCosts {
  struct Arc {
    uint32_t from, to;
    int64_t cost, reverse_cost;  // `from` with the source and `to` with the sink; the other way round
  };
  std::vector<int64_t> sink_cost;  // of each vertex: how much more it costs on the sink's side; may be negative
  std::vector<Arc> arcs;

  uint32_t add_vertex();
  void add_cost(uint32_t v, int64_t on_source_side, int64_t on_sink_side);
  void add_arc(uint32_t from, uint32_t to, int64_t cost, int64_t reverse_cost = 0);
};

// A cheapest cut: true for the vertices on the sink's side. Ties go to the source's side. Faster if neighbours have
// close numbers.
//
// Vertices whose side is obvious and those with at most two neighbours are first eliminated exactly (eliminate.h),
// which alone solves chains, trees and the series and parallel branches that most models consist of. The rest is cut by
// a flow (residual.h): in sweeps over all vertices, then in waves or by push-relabel. See
// docs/decisions/0004-own-minimum-cut.md.
std::vector<bool> minimum_cut(CutCosts costs);

}  // namespace backplane
