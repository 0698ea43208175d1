// SPDX-License-Identifier: Apache-2.0
#include "mincut/eliminate.h"

#include <algorithm>

#include "backplane/types.h"

namespace backplane {

int64_t Elimination::Step::cost(bool with_sink, const bool* others) const {
  int64_t sum = with_sink ? sink_cost : 0;
  for (uint32_t i = 0; i < pair_count; ++i)
    if (with_sink != others[i]) sum += with_sink ? pairs[i].there : pairs[i].here;
  return sum;
}

int64_t Elimination::Step::least(bool u, bool w) const {
  const bool others[2] = {u, w};
  return std::min(cost(false, others), cost(true, others));
}

Elimination::Elimination(CutCosts costs) : costs_(std::move(costs)) {
  const size_t count = costs_.sink_cost.size();
  first_.assign(count, BP_NONE);
  degree_.assign(count, 0);
  here_.assign(count, 0);
  there_.assign(count, 0);
  gone_.assign(count, false);
  waiting_.assign(count, false);
  std::vector<CutCosts::Arc> arcs;
  arcs.swap(costs_.arcs);
  costs_.arcs.reserve(arcs.size());
  next_.reserve(2 * arcs.size());
  for (const CutCosts::Arc& arc : arcs) connect(arc.from, arc.to, arc.cost, arc.reverse_cost);
  for (uint32_t v = 0; v < count; ++v) consider(v);
  for (size_t i = 0; i < queue_.size(); ++i) {
    const uint32_t v = queue_[i];
    waiting_[v] = false;
    const int64_t sink_cost = costs_.sink_cost[v];
    Pair pairs[2];
    if (sink_cost >= here_[v])
      fix_side(v, false);
    else if (-sink_cost > there_[v])
      fix_side(v, true);
    else if (const uint32_t neighbors = collect(v, pairs); neighbors <= 2)
      take_out(v, pairs, neighbors);
  }
}

void Elimination::consider(uint32_t v) {
  if (gone_[v] || waiting_[v]) return;
  // Several arcs may go to one neighbor, so a vertex with more than two arcs may have only two neighbors. Up to 8 arcs
  // are tried.
  const int64_t sink_cost = costs_.sink_cost[v];
  if (degree_[v] > 8 && sink_cost < here_[v] && -sink_cost <= there_[v]) return;
  waiting_[v] = true;
  queue_.push_back(v);
}

void Elimination::add_to_sums(uint32_t u, uint32_t w, int64_t cost, int64_t reverse_cost) {
  here_[u] += cost, there_[u] += reverse_cost;
  here_[w] += reverse_cost, there_[w] += cost;
}

void Elimination::connect(uint32_t u, uint32_t w, int64_t cost, int64_t reverse_cost) {
  const uint32_t a = static_cast<uint32_t>(costs_.arcs.size());
  costs_.arcs.push_back({u, w, cost, reverse_cost});
  dead_.push_back(false);
  next_.push_back(first_[u]);
  first_[u] = 2 * a;
  next_.push_back(first_[w]);
  first_[w] = 2 * a + 1;
  ++degree_[u], ++degree_[w];
  add_to_sums(u, w, cost, reverse_cost);
}

Elimination::Pair Elimination::seen_from(uint32_t half) const {
  const CutCosts::Arc& arc = costs_.arcs[half / 2];
  return half % 2 ? Pair{arc.from, arc.reverse_cost, arc.cost} : Pair{arc.to, arc.cost, arc.reverse_cost};
}

uint32_t Elimination::collect(uint32_t v, Pair* pairs) {
  uint32_t count = 0;
  uint32_t* link = &first_[v];
  while (*link != BP_NONE) {
    const uint32_t half = *link;
    if (dead_[half / 2]) {
      *link = next_[half];
      continue;
    }
    const Pair seen = seen_from(half);
    uint32_t k = 0;
    while (k < count && pairs[k].other != seen.other) ++k;
    if (k == 2) return 3;
    if (k == count) pairs[count++] = {seen.other, 0, 0};
    pairs[k].here += seen.here;
    pairs[k].there += seen.there;
    link = &next_[half];
  }
  return count;
}

void Elimination::drop_arcs(uint32_t v) {
  for (uint32_t half = first_[v]; half != BP_NONE; half = next_[half]) {
    if (dead_[half / 2]) continue;
    dead_[half / 2] = true;
    const Pair seen = seen_from(half);
    --degree_[seen.other];
    add_to_sums(v, seen.other, -seen.here, -seen.there);
  }
}

void Elimination::fix_side(uint32_t v, bool with_sink) {
  steps_.push_back({v, with_sink ? -1 : 0, 0, {}});
  gone_[v] = true;
  for (uint32_t half = first_[v]; half != BP_NONE; half = next_[half]) {
    if (dead_[half / 2]) continue;
    const Pair seen = seen_from(half);
    costs_.sink_cost[seen.other] += with_sink ? -seen.there : seen.here;
  }
  drop_arcs(v);
  for (uint32_t half = first_[v]; half != BP_NONE; half = next_[half]) consider(seen_from(half).other);
}

void Elimination::take_out(uint32_t v, const Pair* pairs, uint32_t count) {
  Step& step = steps_.emplace_back(Step{v, costs_.sink_cost[v], count, {}});
  std::copy_n(pairs, count, step.pairs);
  gone_[v] = true;
  drop_arcs(v);
  if (count == 0) return;
  const uint32_t u = pairs[0].other;
  const int64_t e00 = step.least(false, false), e11 = step.least(true, true);
  if (count == 1) {
    costs_.sink_cost[u] += e11 - e00;
    return consider(u);
  }
  // The minimum over v's side, as a function of the sides y_u and y_w (1: sink), is e00 + y_u·more_u + y_w·more_w plus
  // the cost of an arc. `more_u` is the number closest to 0 for which both costs of the arc are >= 0.
  const uint32_t w = pairs[1].other;
  const int64_t e01 = step.least(false, true), e10 = step.least(true, false);
  const int64_t more_u = std::clamp<int64_t>(0, e11 - e01, e10 - e00);
  const int64_t more_w = e11 - e00 - more_u;
  costs_.sink_cost[u] += more_u;
  costs_.sink_cost[w] += more_w;
  const int64_t cost = e01 - e00 - more_w, reverse_cost = e10 - e00 - more_u;
  if (cost > 0 || reverse_cost > 0) {
    // Searches for an existing arc between u and w, but only in the first 8 arcs of the vertex with fewer arcs. If none
    // is found, adds a parallel arc.
    const uint32_t at = degree_[u] <= degree_[w] ? u : w, other = at == u ? w : u;
    uint32_t found = BP_NONE, left = 8;
    for (uint32_t half = first_[at]; half != BP_NONE && left > 0; half = next_[half], --left)
      if (!dead_[half / 2] && seen_from(half).other == other) found = half / 2;
    if (found == BP_NONE) {
      connect(u, w, cost, reverse_cost);
    } else {
      CutCosts::Arc& arc = costs_.arcs[found];
      const bool same = arc.from == u;
      arc.cost += same ? cost : reverse_cost;
      arc.reverse_cost += same ? reverse_cost : cost;
      add_to_sums(u, w, cost, reverse_cost);
    }
  }
  consider(u);
  consider(w);
}

CutCosts Elimination::rest() const {
  CutCosts rest;
  std::vector<uint32_t> number(gone_.size());
  for (uint32_t v = 0; v < gone_.size(); ++v) {
    if (gone_[v]) continue;
    number[v] = rest.add_vertex();
    rest.sink_cost.back() = costs_.sink_cost[v];
  }
  for (size_t a = 0; a < costs_.arcs.size(); ++a) {
    const CutCosts::Arc& arc = costs_.arcs[a];
    if (!dead_[a]) rest.add_arc(number[arc.from], number[arc.to], arc.cost, arc.reverse_cost);
  }
  return rest;
}

std::vector<bool> Elimination::complete(const std::vector<bool>& rest) const {
  std::vector<bool> with_sink(gone_.size());
  for (size_t v = 0, i = 0; v < gone_.size(); ++v)
    if (!gone_[v]) with_sink[v] = rest[i++];
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    bool others[2] = {};
    for (uint32_t i = 0; i < step->pair_count; ++i) others[i] = with_sink[step->pairs[i].other];
    with_sink[step->vertex] = step->cost(true, others) < step->cost(false, others);
  }
  return with_sink;
}

}  // namespace backplane
