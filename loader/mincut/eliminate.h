// SPDX-License-Identifier: Apache-2.0
// Reduces a minimum-cut problem without changing its cost.
#pragma once

#include "mincut/minimum_cut.h"

namespace backplane {

// Removes vertices while one of two rules applies:
// - A vertex that costs more on one side than all its arcs together is on the other side. The costs of its arcs become
//   costs of its neighbours.
// - A vertex with at most two neighbours. Its side follows from theirs, so its costs become costs of the neighbours and
//   of their pair: with E[u][w] its cheapest cost for the sides of u and w, E[0][1] + E[1][0] >= E[0][0] + E[1][1]
//   holds because it holds for each arc, and so the pair's cost is an arc again.
// Linear in the size of the network.
class Elimination {
 public:
  explicit Elimination(CutCosts costs);
  // The remaining problem, its vertices renumbered.
  CutCosts rest() const;
  // The sides of all vertices, from the sides of the remaining ones.
  std::vector<bool> complete(const std::vector<bool>& rest) const;

 private:
  // A pair of vertices seen from one of them.
  struct Pair {
    uint32_t other;
    int64_t here;   // cost when this one is with the source and the other with the sink
    int64_t there;  // the reverse
  };
  struct Step {
    uint32_t vertex;
    int64_t sink_cost;
    uint32_t pair_count;
    Pair pairs[2];
    int64_t cost(bool with_sink, const bool* others) const;
    int64_t least(bool u, bool w) const;
  };

  Pair seen_from(uint32_t half) const;
  uint32_t collect(
      uint32_t v,
      Pair* pairs);  // merges v's arcs by neighbour; returns the number of neighbours, 3 if there are more than two
  void fix_side(uint32_t v, bool with_sink);
  void take_out(uint32_t v, const Pair* pairs, uint32_t count);
  void drop_arcs(uint32_t v);
  void connect(uint32_t u, uint32_t w, int64_t cost, int64_t reverse_cost);
  void add_to_sums(uint32_t u, uint32_t w, int64_t cost, int64_t reverse_cost);
  void consider(uint32_t v);

  CutCosts costs_;
  // Arc a is entry 2a of its `from`'s list and 2a+1 of its `to`'s.
  std::vector<uint32_t> first_, next_, degree_;
  std::vector<int64_t> here_, there_;        // of a vertex: sums over its arcs, as in Pair
  std::vector<bool> dead_, gone_, waiting_;  // arcs; vertices; vertices in the queue
  std::vector<uint32_t> queue_;
  std::vector<Step> steps_;
};

}  // namespace backplane
