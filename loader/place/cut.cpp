// SPDX-License-Identifier: Apache-2.0
#include "place/cut.h"

namespace backplane {

void cut(const model::Graph& graph, const Problem& problem, const Solution& found, Placement& placement) {
  std::vector<uint32_t> producer(graph.values.size(), BP_NONE);
  for (uint32_t device : found.order.devices) {
    Island& island = placement.islands.emplace_back();
    island.device = device;
    island.launch_seconds = problem.launch[device];
  }
  for (uint32_t i = 0; i < problem.nodes; ++i) {
    for (model::ValueId value : graph.nodes[i].outputs)
      if (value != BP_NONE) producer[value] = i;
    Island& island = placement.islands[found.order.island[i]];
    island.nodes.push_back(i);
    island.seconds += problem.at(i, island.device);
  }
  for (const Problem::Group& group : problem.groups)
    if (group.saving > 0 && together(group, found.assignment, found.order))
      placement.islands[found.order.island[group.nodes[0]]].seconds -= group.saving;

  // Finds the values that cross between islands. Each value is listed once as an input of an island that reads it, and
  // once as an output of the island that writes it.
  std::vector<uint32_t> entered(graph.values.size(), BP_NONE);
  std::vector<bool> left(graph.values.size(), false);
  const auto leave = [&](model::ValueId value) {
    if (producer[value] == BP_NONE || left[value]) return;
    left[value] = true;
    placement.islands[found.order.island[producer[value]]].outputs.push_back(value);
  };
  for (uint32_t k = 0; k < placement.islands.size(); ++k) {
    Island& island = placement.islands[k];
    for (uint32_t i : island.nodes)
      for_each_read(graph, graph.nodes[i], [&](model::ValueId value) {
        const uint32_t p = producer[value];
        if (p != BP_NONE && found.order.island[p] == k) return;
        if (entered[value] == k || graph.values[value].weight != BP_NONE) return;
        entered[value] = k;
        island.inputs.push_back(value);
        leave(value);
      });
  }
  for (model::ValueId value : graph.outputs) leave(value);

  const auto place = [&](uint32_t label) { return label == problem.host() ? BP_NONE : label; };
  for_each_copy(problem, found.assignment, [&](const Problem::Link& link, uint32_t to, double seconds) {
    const uint32_t from = link.producer == BP_NONE ? BP_NONE : found.assignment[link.producer];
    if (seconds == 0) return;
    const uint32_t origin = from == BP_NONE ? problem.host() : from;
    const Source source = problem.copies[origin * (problem.devices + 1) + to].source;
    placement.copies.push_back({link.value, from, place(to), seconds, link.bytes, source});
  });
}

}  // namespace backplane
