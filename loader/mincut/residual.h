// SPDX-License-Identifier: Apache-2.0
// A flow network while a flow is looked for.
#pragma once

#include <cstddef>

#include "mincut/minimum_cut.h"

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
  // Fetches the arcs of a vertex that a search is about to come to: they are all over memory.
  void fetch_ahead(const std::vector<uint32_t>& queue, size_t i) const {
    constexpr size_t kAhead = 8;
    if (i + 2 * kAhead < queue.size()) __builtin_prefetch(&first[queue[i + 2 * kAhead]]);
    if (i + kAhead >= queue.size()) return;
    const Arc* there = arcs.data() + first[queue[i + kAhead]];
    __builtin_prefetch(there);
    __builtin_prefetch(there + 4);
  }
  // What is left to flow from the source, and to the sink.
  int64_t unsent() const;
  int64_t unsent_to_sink() const;
  // Turns everything round: the source becomes the sink.
  void mirror();
};

// Carries what has to flow along the numbering of the vertices, to its front and to its end in turn, for as long as
// each turn settles a quarter of the rest: near-linear, and where arcs carry much more than vertices have, as where
// copies are dear, hardly any flow is left. What an arc carries does not depend on where the flow comes from, so
// sources and sinks move to other vertices, and the cut stays the same: cost is only written down elsewhere.
void send_in_sweeps(Residual& network);

// The rest of the flow, in waves: all that has to flow goes one way to its end along a breadth-first search, as far as
// the arcs carry it; what got stuck goes on in the next wave, by the next search. Each wave is linear. It is the number
// of detours that decides how many there are, not how far flow has to go nor how much of it can't arrive.
void send_in_waves(Residual& network);

// The rest of the flow by push-relabel, from the side that has less of it. Fast where nearly all of that can arrive:
// what cannot is pushed to and fro until its labels say so.
void send_by_labels(Residual& network);

// True for vertices that still reach the sink: where all flow is sent, those that have to be with it.
std::vector<bool> reaches_sink(const Residual& network);

}  // namespace backplane
