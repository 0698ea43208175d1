// SPDX-License-Identifier: Apache-2.0
// Minimum s-t cut of a sparse network.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane {

// Vertices are 0 … count-1; the two terminals are not among them. A cut puts every vertex on the source's or the sink's side and
// costs the capacity of the arcs from the former to the latter.
class Network {
 public:
  // More than any cut that is asked for may cost; the sum of all other capacities stays below it.
  static constexpr int64_t unbounded = int64_t{1} << 60;

  explicit Network(uint32_t count) : excess_(count, 0) {}

  uint32_t add_vertex();
  // What it costs to have `v` on the source's side, or on the sink's.
  void add_cost(uint32_t v, int64_t on_source_side, int64_t on_sink_side);
  // What it costs to have `u` on the source's side and `v` on the sink's; and the reverse.
  void add_arc(uint32_t u, uint32_t v, int64_t cost, int64_t reverse_cost = 0);

  // Of the cheapest cuts the one with the fewest vertices on the sink's side: true for those. Once only; the network is used up.
  //
  // Push-relabel with highest label first, exact labels at the start and after every pass' worth of work, and the gap rule. It stops
  // at a maximal preflow, which is all that a cut needs. See docs/decisions/0004-own-maximum-flow.md.
  std::vector<bool> cut();

 private:
  struct Arc {
    uint32_t from, to;
    int64_t capacity, reverse;
  };
  struct Solver;
  std::vector<Arc> arcs_;
  std::vector<int64_t> excess_;  // more than 0: from the source, less: to the sink
};

}  // namespace backplane
