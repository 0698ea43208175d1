// SPDX-License-Identifier: Apache-2.0
#include "place/partial.h"

#include <algorithm>

namespace backplane {
namespace {

std::vector<uint32_t> uncovered_nodes(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                                      const Policy& policy) {
  const size_t allowed = policy.fallback == BP_FALLBACK_FORBID ? 1 : coverage.size();
  std::vector<uint32_t> nodes;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (std::none_of(coverage.begin(), coverage.begin() + static_cast<std::ptrdiff_t>(allowed),
                     [&](const DeviceCoverage& device) { return device.nodes[i].usable(); }))
      nodes.push_back(i);
  return nodes;
}

// Takes the islands of nodes without a device out and numbers the others anew.
void drop_uncovered(Placement& placement) {
  std::vector<uint32_t> number(placement.islands.size(), BP_NONE);
  std::vector<Island> kept;
  for (uint32_t k = 0; k < placement.islands.size(); ++k) {
    if (placement.device[placement.islands[k].nodes.front()] == BP_NONE) continue;
    number[k] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(placement.islands[k]));
  }
  placement.islands = std::move(kept);
  for (uint32_t& island : placement.island)
    if (island != BP_NONE) island = number[island];
}

}  // namespace

Result<Placement> place_partly(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                               const Policy& policy) {
  const std::vector<uint32_t> uncovered = uncovered_nodes(graph, coverage, policy);
  if (uncovered.empty()) return place(graph, coverage, policy);

  // The first device is said to take them, in a part of their own: parts never share an island.
  std::vector<DeviceCoverage> pretended = coverage;
  std::vector<NodeVerdict>& verdicts = pretended.front().nodes;
  const uint32_t part = std::ranges::max_element(verdicts, {}, &NodeVerdict::part)->part + 1;
  for (uint32_t node : uncovered) {
    verdicts[node].answer = BP_ANSWER_YES;
    verdicts[node].part = part;
  }
  Policy unbounded = policy;
  unbounded.max_islands = 0;
  BP_ASSIGN(Placement placement, place(graph, pretended, unbounded));
  for (uint32_t node : uncovered) placement.device[node] = BP_NONE;
  drop_uncovered(placement);
  placement.copies.clear();
  placement.savings.clear();
  placement.cost = {};
  return placement;
}

}  // namespace backplane
