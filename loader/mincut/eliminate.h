// SPDX-License-Identifier: Apache-2.0
// Reduces a minimum-cut problem to a smaller one. Each cheapest cut of it extends to a cheapest cut of the original.
#pragma once

#include "mincut/minimum_cut.h"

namespace backplane {

// Removes vertices by two rules:
// - A vertex whose extra cost on one side exceeds (on the sink's: is at least) all that its arcs can cost if it is on
//   the other side belongs to the other side. The costs of its arcs become costs of its neighbors.
// - The best side of a vertex with at most two neighbors u and w follows from their sides, so its costs become costs of
//   u, w and the pair. With E[u][w] the vertex's lowest cost for given sides of u and w (0: source, 1: sink),
//   E[0][1] + E[1][0] >= E[0][0] + E[1][1] holds because it holds for each arc. Therefore the pair's cost can be
//   written as an arc. Vertices with more than eight arcs are not tried.
// Runs in time linear in the size of the network.
class Elimination {
 public:
  explicit Elimination(CutCosts costs);
  // The remaining problem, with its vertices renumbered.
  CutCosts rest() const;
  // Returns the sides of all vertices, given the sides of the remaining ones.
  std::vector<bool> complete(const std::vector<bool>& rest) const;

 private:
  // A pair of neighbors, seen from one of them ("this vertex").
  struct Pair {
    uint32_t other;
    int64_t here;   // cost when this vertex is on the source's side and `other` on the sink's
    int64_t there;  // cost when the sides are exchanged
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
      Pair* pairs);  // merges v's arcs by neighbor; returns the number of neighbors, or 3 if there are more than two
  void fix_side(uint32_t v, bool with_sink);
  void take_out(uint32_t v, const Pair* pairs, uint32_t count);
  void drop_arcs(uint32_t v);
  void connect(uint32_t u, uint32_t w, int64_t cost, int64_t reverse_cost);
  void add_to_sums(uint32_t u, uint32_t w, int64_t cost, int64_t reverse_cost);
  void consider(uint32_t v);

  CutCosts costs_;
  // Each arc is in two linked lists: arc a is entry 2a in the list of its `from` and entry 2a+1 in the list of its
  // `to`.
  std::vector<uint32_t> first_, next_, degree_;
  std::vector<int64_t> here_, there_;        // for each vertex: sums over its arcs, as in Pair
  std::vector<bool> dead_, gone_, waiting_;  // dead arcs; removed vertices; vertices in the queue
  std::vector<uint32_t> queue_;
  std::vector<Step> steps_;
};

}  // namespace backplane
