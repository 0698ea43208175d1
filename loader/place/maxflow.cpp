// SPDX-License-Identifier: Apache-2.0
#include "place/maxflow.h"

#include <algorithm>

#include "backplane/types.h"
#include "place/eliminate.h"

namespace backplane {

uint32_t CutCosts::add_vertex() {
  sink_cost.push_back(0);
  return static_cast<uint32_t>(sink_cost.size() - 1);
}

void CutCosts::add_cost(uint32_t v, int64_t on_source_side, int64_t on_sink_side) {
  sink_cost[v] += on_sink_side - on_source_side;  // what both sides cost changes no cut
}

void CutCosts::add_arc(uint32_t from, uint32_t to, int64_t cost, int64_t reverse_cost) {
  if (from != to && (cost > 0 || reverse_cost > 0)) arcs.push_back({from, to, cost, reverse_cost});
}

namespace {

// Highest label first, exact labels at the start and after every pass' worth of work, and the gap rule. It stops at a
// maximal preflow, which is all that a cut needs.
//
// Residual arcs of vertex v are first[v] … first[v+1]-1, the twin of arc a is twin[a]. `label` is a lower bound of the
// residual distance to the sink; `far` means that there is no way.
struct PushRelabel {
  uint32_t count, far;
  std::vector<uint32_t> first, head, twin, current, label;
  std::vector<int64_t> residual, excess, to_sink;
  // Vertices by label, in doubly linked lists, for the gap rule; those with excess also in stacks.
  std::vector<uint32_t> level, next, previous, active, next_active;
  uint32_t highest_active = 0, highest = 0;
  uint64_t work = 0;

  explicit PushRelabel(const CutCosts& costs)
      : count(static_cast<uint32_t>(costs.sink_cost.size())),
        far(count + 1),
        first(count + 1, 0),
        label(count),
        excess(count),
        to_sink(count),
        level(far),
        next(count),
        previous(count),
        active(far),
        next_active(count) {
    for (const CutCosts::Arc& arc : costs.arcs) ++first[arc.from + 1], ++first[arc.to + 1];
    for (uint32_t v = 0; v < count; ++v) first[v + 1] += first[v];
    current.assign(first.begin(), first.end() - 1);
    head.resize(first[count]), twin.resize(first[count]), residual.resize(first[count]);
    for (const CutCosts::Arc& arc : costs.arcs) {
      const uint32_t a = current[arc.from]++, b = current[arc.to]++;
      head[a] = arc.to, head[b] = arc.from;
      twin[a] = b, twin[b] = a;
      residual[a] = arc.cost, residual[b] = arc.reverse_cost;
    }
    for (uint32_t v = 0; v < count; ++v) {
      excess[v] = std::max<int64_t>(0, costs.sink_cost[v]);
      to_sink[v] = std::max<int64_t>(0, -costs.sink_cost[v]);
    }
  }

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

  // Exact labels, breadth first from the sink.
  void relabel_all() {
    std::ranges::fill(label, far);
    std::ranges::fill(level, BP_NONE);
    std::ranges::fill(active, BP_NONE);
    highest_active = highest = 0;
    std::vector<uint32_t> queue;
    for (uint32_t v = 0; v < count; ++v)
      if (to_sink[v] > 0) label[v] = 1, queue.push_back(v);
    for (size_t i = 0; i < queue.size(); ++i) {
      const uint32_t v = queue[i];
      for (uint32_t a = first[v]; a < first[v + 1]; ++a) {
        const uint32_t u = head[a];
        if (label[u] == far && residual[twin[a]] > 0) label[u] = label[v] + 1, queue.push_back(u);
      }
    }
    for (uint32_t v : queue) {
      current[v] = first[v];
      enlist(v);
      if (excess[v] > 0) activate(v);
    }
    work = 0;
  }

  // No vertex has label `gap` any more: those above it can't reach the sink.
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
      for (; a < first[v + 1]; ++a, ++work) {
        const uint32_t u = head[a];
        if (residual[a] <= 0 || label[u] + 1 != label[v]) continue;
        const int64_t amount = std::min(excess[v], residual[a]);
        residual[a] -= amount, residual[twin[a]] += amount;
        if (excess[u] == 0) activate(u);
        excess[u] += amount;
        if ((excess[v] -= amount) == 0) return;
      }
      relabel(v);
    }
  }

  void relabel(uint32_t v) {
    uint32_t lowest = to_sink[v] > 0 ? 0 : count;
    for (uint32_t a = first[v]; a < first[v + 1]; ++a)
      if (residual[a] > 0) lowest = std::min(lowest, label[head[a]]);
    work += first[v + 1] - first[v] + 8;
    const uint32_t old = label[v];
    delist(v);
    label[v] = std::min(lowest, count) + 1;
    current[v] = first[v];
    if (label[v] < far) enlist(v);
    if (level[old] == BP_NONE) close_gap(old);  // v, being above it, goes too
  }

  void run() {
    const uint64_t pass = 6 * uint64_t{count} + head.size();
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

std::vector<bool> minimum_cut(CutCosts costs) {
  Elimination elimination(std::move(costs));
  PushRelabel solver(elimination.rest());
  solver.run();
  solver.relabel_all();
  std::vector<bool> with_sink(solver.count);
  for (uint32_t v = 0; v < solver.count; ++v) with_sink[v] = solver.label[v] < solver.far;
  return elimination.complete(with_sink);
}

}  // namespace backplane
