// SPDX-License-Identifier: Apache-2.0
#include "mincut/residual.h"

#include <algorithm>
#include <numeric>

namespace backplane {

Residual::Residual(const CutCosts& costs) : count(static_cast<uint32_t>(costs.sink_cost.size())), first(count + 1, 0) {
  for (const CutCosts::Arc& arc : costs.arcs) ++first[arc.from + 1], ++first[arc.to + 1];
  for (uint32_t v = 0; v < count; ++v) first[v + 1] += first[v];
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  arcs.resize(first[count]);
  for (const CutCosts::Arc& arc : costs.arcs) {
    const uint32_t a = next[arc.from]++, b = next[arc.to]++;
    arcs[a] = {arc.to, b, arc.cost};
    arcs[b] = {arc.from, a, arc.reverse_cost};
  }
  for (int64_t cost : costs.sink_cost) {
    excess.push_back(std::max<int64_t>(0, cost));
    to_sink.push_back(std::max<int64_t>(0, -cost));
  }
}

int64_t Residual::unsent() const {
  return std::accumulate(excess.begin(), excess.end(), int64_t{0});
}

int64_t Residual::unsent_to_sink() const {
  return std::accumulate(to_sink.begin(), to_sink.end(), int64_t{0});
}

void Residual::mirror() {
  excess.swap(to_sink);
  for (uint32_t a = 0; a < arcs.size(); ++a)
    if (a < arcs[a].twin) std::swap(arcs[a].left, arcs[arcs[a].twin].left);
}

std::vector<bool> reaches_sink(const Residual& network) {
  std::vector<bool> reaches(network.count);
  std::vector<uint32_t> found;
  const auto find = [&](uint32_t v) {
    reaches[v] = true;
    found.push_back(v);
  };
  for (uint32_t v = 0; v < network.count; ++v)
    if (network.to_sink[v] > 0) find(v);
  for (size_t i = 0; i < found.size(); ++i) {
    network.fetch_ahead(found, i);
    for (uint32_t a = network.first[found[i]]; a < network.first[found[i] + 1]; ++a) {
      const Residual::Arc& arc = network.arcs[a];
      if (!reaches[arc.head] && network.arcs[arc.twin].left > 0) find(arc.head);
    }
  }
  return reaches;
}

}  // namespace backplane
