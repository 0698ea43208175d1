// SPDX-License-Identifier: Apache-2.0
#include "place/cut.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace backplane {
namespace {

// Values of this graph that a node reads, those of its sub-graphs included.
void for_each_read(const model::Graph& graph, const model::Node& node, const auto& visit) {
  for (model::ValueId value : node.inputs)
    if (value != BP_NONE) visit(value);
  for (const model::Attribute& attribute : node.attributes) {
    if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
    for (uint32_t index : attribute.indices())
      for (const model::Value& inner : graph.subgraphs[index]->values)
        if (inner.outer != BP_NONE) visit(inner.outer);
  }
}

}  // namespace

void cut(const model::Graph& graph, Placement& placement) {
  const size_t count = graph.nodes.size();
  std::vector<uint32_t> producer(graph.values.size(), BP_NONE);
  for (uint32_t i = 0; i < count; ++i)
    for (model::ValueId value : graph.nodes[i].outputs)
      if (value != BP_NONE) producer[value] = i;

  const auto owner = [&](uint32_t i) { return std::pair(placement.device[i], placement.part[i]); };
  std::vector<uint32_t> level(count, 0);
  for (uint32_t i = 0; i < count; ++i)
    for_each_read(graph, graph.nodes[i], [&](model::ValueId value) {
      const uint32_t p = producer[value];
      if (p != BP_NONE) level[i] = std::max(level[i], level[p] + (owner(p) != owner(i)));
    });

  // Islands in the order of their levels, which is an order in which they can run.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> numbers;
  const auto key_of = [&](uint32_t i) { return std::tuple(level[i], placement.device[i], placement.part[i]); };
  for (uint32_t i = 0; i < count; ++i) numbers.try_emplace(key_of(i), 0);
  placement.islands.clear();
  for (auto& [key, number] : numbers) {
    number = static_cast<uint32_t>(placement.islands.size());
    placement.islands.push_back({std::get<1>(key), {}, {}, {}});
  }
  placement.island.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    placement.island[i] = numbers[key_of(i)];
    placement.islands[placement.island[i]].nodes.push_back(i);
  }

  // What crosses. A value enters an island once and leaves it once.
  std::vector<uint32_t> entered(graph.values.size(), BP_NONE);
  std::vector<bool> left(graph.values.size(), false);
  const auto leave = [&](model::ValueId value) {
    if (producer[value] == BP_NONE || left[value]) return;
    left[value] = true;
    placement.islands[placement.island[producer[value]]].outputs.push_back(value);
  };
  for (uint32_t k = 0; k < placement.islands.size(); ++k) {
    Island& island = placement.islands[k];
    for (uint32_t i : island.nodes)
      for_each_read(graph, graph.nodes[i], [&](model::ValueId value) {
        const uint32_t p = producer[value];
        if (graph.values[value].weight != BP_NONE || entered[value] == k) return;
        if (p != BP_NONE && placement.island[p] == k) return;
        entered[value] = k;
        island.inputs.push_back(value);
        leave(value);
      });
  }
  for (model::ValueId value : graph.outputs) leave(value);
}

}  // namespace backplane
