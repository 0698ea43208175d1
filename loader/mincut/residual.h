// SPDX-License-Identifier: Apache-2.0
// A residual network, through which sweep.h, wave.h and push_relabel.h send flow.
#pragma once

#include <cstddef>

#include "mincut/minimum_cut.h"

namespace backplane {

// Arcs of vertex v are first[v] … first[v+1]-1. Arcs from the source and to the sink are stored as one number per
// vertex (excess, to_sink).
struct Residual {
  struct Arc {
    uint32_t head, twin;  // the vertex at its end; the index of the reverse arc
    int64_t left;         // remaining capacity
  };
  uint32_t count;
  std::vector<uint32_t> first;
  std::vector<Arc> arcs;
  std::vector<int64_t> excess, to_sink;  // flow from the source that is still at the vertex; capacity to the sink

  explicit Residual(const CutCosts& costs);
  // Prefetches the arcs of vertices that follow `i` in a search's queue, as they are scattered in memory.
  void fetch_ahead(const std::vector<uint32_t>& queue, size_t i) const {
    constexpr size_t kAhead = 8;
    if (i + 2 * kAhead < queue.size()) __builtin_prefetch(&first[queue[i + 2 * kAhead]]);
    if (i + kAhead >= queue.size()) return;
    const Arc* there = arcs.data() + first[queue[i + kAhead]];
    __builtin_prefetch(there);
    __builtin_prefetch(there + 4);
  }
  // The flow that remains to be sent from the source, and to the sink.
  int64_t unsent() const;
  int64_t unsent_to_sink() const;
  // Reverses all arcs: the source becomes the sink.
  void mirror();
};

// True for vertices that can still reach the sink. Once no more flow can be sent, they are the sink's side of the
// minimum cut.
std::vector<bool> reaches_sink(const Residual& network);

}  // namespace backplane
