// SPDX-License-Identifier: Apache-2.0
// A flow network while a flow is looked for.
#pragma once

#include "place/maxflow.h"

namespace backplane {

// Arcs of vertex v are first[v] … first[v+1]-1. The source's and the sink's arcs are numbers of the vertex.
struct Residual {
  struct Arc {
    uint32_t head, twin;
    int64_t left;
  };
  uint32_t count;
  std::vector<uint32_t> first;
  std::vector<Arc> arcs;
  std::vector<int64_t> excess, to_sink;  // from the source, to the sink

  explicit Residual(const CutCosts& costs);
};

// Carries what has to flow along the numbering of the vertices, to its front and to its end in turn, for as long as
// each turn settles a quarter of the rest: near-linear, and where arcs carry much more than vertices have, as where
// copies are dear, hardly any flow is left. What an arc carries does not depend on where the flow comes from, so
// sources and sinks move to other vertices, and the cut stays the same: cost is only written down elsewhere.
void send_in_sweeps(Residual& network);

// Sends flow along shortest paths: a tree of what the source reaches and one of what reaches the sink grow level by
// level, and where they meet flow is sent; what loses its tree that way looks for another place in it. (Incremental
// breadth-first search.) Unlike push-relabel it needs no labels of the whole network, and most flow has a short way to
// go. It stops when there is no path left, or where `work` steps are spent: where flow has far to travel, walking each
// path from end to end is quadratic.
void send_nearby(Residual& network, uint64_t work);

// The rest of the flow, as far as a cut needs it, by push-relabel. True for vertices that still reach the sink.
std::vector<bool> send_all(Residual& network);

}  // namespace backplane
