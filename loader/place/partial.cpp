// SPDX-License-Identifier: Apache-2.0
#include "place/partial.h"

#include <algorithm>

#include "place/problem.h"

namespace backplane {
namespace {

// Returns the nodes that no device supports, including those supported only as part of an impossible group.
std::vector<uint32_t> uncovered_nodes(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                                      const Policy& policy) {
  const uint32_t only = policy.fallback == BP_FALLBACK_FORBID ? 0 : BP_NONE;
  const Problem problem = make_problem(graph, coverage, std::vector<uint32_t>(graph.nodes.size(), only));
  std::vector<uint32_t> nodes;
  for (uint32_t i = 0; i < problem.nodes; ++i) {
    bool taken = false;
    for (uint32_t d = 0; d < problem.devices; ++d) taken = taken || problem.can(i, d);
    if (!taken) nodes.push_back(i);
  }
  return nodes;
}

// Makes the device support the nodes, at their estimated cost. They get a separate part, so that no island mixes them
// with other nodes. Removes the device's groups that contain any of them; the other nodes of a removed atomic group
// become unsupported on the device.
void claim_all(DeviceCoverage& device, const std::vector<uint32_t>& nodes) {
  std::vector<NodeVerdict>& verdicts = device.nodes;
  std::erase_if(device.groups, [&](const NodeGroup& group) {
    const bool meets =
        std::ranges::any_of(group.nodes, [&](uint32_t i) { return std::ranges::binary_search(nodes, i); });
    if (meets && group.atomic)
      for (uint32_t i : group.nodes) verdicts[i].answer = BP_ANSWER_NO;
    return meets;
  });
  const uint32_t part = std::ranges::max_element(verdicts, {}, &NodeVerdict::part)->part + 1;
  for (uint32_t node : nodes) {
    verdicts[node].answer = BP_ANSWER_YES;
    verdicts[node].part = part;
  }
}

// Removes the islands of nodes without a device and renumbers the remaining islands.
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
                               const Policy& policy, const PlaceLimits& limits) {
  const std::vector<uint32_t> uncovered = uncovered_nodes(graph, coverage, policy);
  if (uncovered.empty()) return place(graph, coverage, policy, limits);

  std::vector<DeviceCoverage> claiming = coverage;
  claim_all(claiming.front(), uncovered);
  Policy unbounded = policy;
  unbounded.max_islands = 0;
  BP_ASSIGN(Placement placement, place(graph, claiming, unbounded, limits));
  for (uint32_t node : uncovered) placement.device[node] = BP_NONE;
  drop_uncovered(placement);
  placement.copies.clear();
  placement.missed_speedups.clear();
  placement.cost = {};
  return placement;
}

}  // namespace backplane
