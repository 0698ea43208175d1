// SPDX-License-Identifier: Apache-2.0
#include "mincut/push_relabel.h"

#include <algorithm>

#include "backplane/types.h"

namespace backplane {
namespace {

// Push-relabel with the highest label first and the gap rule. Labels are made exact at the start, and again
// whenever about as much work as one pass over the network has been done. Stops at a maximum preflow, which is
// sufficient for a cut.
//
// `label` is a lower bound of the residual distance to the sink; `far` means that there is no path.
struct PushRelabel {
  Residual& network;
  const uint32_t count, far;
  std::vector<int64_t>&excess, &to_sink;
  std::vector<uint32_t> current, label;
  // Vertices by label: all in doubly linked lists, for the gap rule, and those with excess also in stacks.
  std::vector<uint32_t> level, next, previous, active, next_active;
  uint32_t highest_active = 0, highest = 0;
  uint64_t work = 0;

  explicit PushRelabel(Residual& network)
      : network(network),
        count(network.count),
        far(count + 1),
        excess(network.excess),
        to_sink(network.to_sink),
        current(count),
        label(count),
        level(far),
        next(count),
        previous(count),
        active(far),
        next_active(count) {}

  void enlist(uint32_t v) {
    const uint32_t l = label[v];
    previous[v] = BP_NONE, next[v] = level[l];
    if (level[l] != BP_NONE) previous[level[l]] = v;
    level[l] = v;
    highest = std::max(highest, l);
  }

  void delist(uint32_t v) {
    if (next[v] != BP_NONE) previous[next[v]] = previous[v];
    (previous[v] == BP_NONE ? level[label[v]] : next[previous[v]]) = next[v];
  }

  void activate(uint32_t v) {
    next_active[v] = active[label[v]];
    active[label[v]] = v;
    highest_active = std::max(highest_active, label[v]);
  }

  // Computes exact labels, breadth first from the sink.
  void relabel_all() {
    std::ranges::fill(label, far);
    std::ranges::fill(level, BP_NONE);
    std::ranges::fill(active, BP_NONE);
    highest_active = highest = 0;
    std::vector<uint32_t> queue;
    for (uint32_t v = 0; v < count; ++v)
      if (to_sink[v] > 0) label[v] = 1, queue.push_back(v);
    for (size_t i = 0; i < queue.size(); ++i) {
      network.fetch_ahead(queue, i);
      const uint32_t v = queue[i];
      for (uint32_t a = network.first[v]; a < network.first[v + 1]; ++a) {
        const uint32_t u = network.arcs[a].head;
        if (label[u] == far && network.arcs[network.arcs[a].twin].left > 0) label[u] = label[v] + 1, queue.push_back(u);
      }
    }
    for (uint32_t v : queue) {
      current[v] = network.first[v];
      enlist(v);
      if (excess[v] > 0) activate(v);
    }
    work = 0;
  }

  // No vertex has label `gap` any more, so vertices with larger labels cannot reach the sink.
  void close_gap(uint32_t gap) {
    for (uint32_t l = gap + 1; l <= highest; ++l) {
      for (uint32_t v = level[l]; v != BP_NONE; v = next[v]) label[v] = far;
      level[l] = active[l] = BP_NONE;
    }
    highest = gap;
  }

  void discharge(uint32_t v) {
    while (excess[v] > 0 && label[v] < far) {
      if (label[v] == 1 && to_sink[v] > 0) {
        const int64_t amount = std::min(excess[v], to_sink[v]);
        excess[v] -= amount, to_sink[v] -= amount;
        continue;
      }
      uint32_t& a = current[v];
      for (; a < network.first[v + 1]; ++a, ++work) {
        Residual::Arc& arc = network.arcs[a];
        const uint32_t u = arc.head;
        if (arc.left <= 0 || label[u] + 1 != label[v]) continue;
        const int64_t amount = std::min(excess[v], arc.left);
        arc.left -= amount, network.arcs[arc.twin].left += amount;
        if (excess[u] == 0) activate(u);
        excess[u] += amount;
        if ((excess[v] -= amount) == 0) return;
      }
      relabel(v);
    }
  }

  void relabel(uint32_t v) {
    uint32_t lowest = to_sink[v] > 0 ? 0 : count;
    for (uint32_t a = network.first[v]; a < network.first[v + 1]; ++a)
      if (network.arcs[a].left > 0) lowest = std::min(lowest, label[network.arcs[a].head]);
    work += network.first[v + 1] - network.first[v] + 8;
    const uint32_t old = label[v];
    delist(v);
    label[v] = std::min(lowest, count) + 1;
    current[v] = network.first[v];
    if (label[v] < far) enlist(v);
    if (level[old] == BP_NONE) close_gap(old);  // v is above the gap too, and becomes `far`
  }

  void run() {
    const uint64_t pass = 6 * uint64_t{count} + network.arcs.size();
    relabel_all();
    for (;;) {
      while (highest_active > 0 && active[highest_active] == BP_NONE) --highest_active;
      if (highest_active == 0) return;
      const uint32_t v = active[highest_active];
      active[highest_active] = next_active[v];
      discharge(v);
      if (work > pass) relabel_all();
    }
  }
};

}  // namespace

void send_by_push_relabel(Residual& network) {
  const bool from_sink = network.unsent_to_sink() < network.unsent();
  if (from_sink) network.mirror();
  PushRelabel(network).run();
  if (from_sink) network.mirror();
}

}  // namespace backplane
