// SPDX-License-Identifier: Apache-2.0
#include "place/problem.h"

#include <algorithm>

#include "place/groups.h"

namespace backplane {
namespace {

void add_links(const model::Graph& graph, Problem& problem) {
  const size_t values = graph.values.size();
  std::vector<bool> constant(values);
  for (size_t v = 0; v < values; ++v) constant[v] = graph.values[v].weight != BP_NONE;
  // Lists the readers of each value, each reader once. The first pass counts them, the second fills them in.
  std::vector<uint32_t> last(values, BP_NONE), first(values + 1, 0);
  const auto each = [&](const auto& visit) {
    std::ranges::fill(last, BP_NONE);
    for (uint32_t i = 0; i < problem.nodes; ++i)
      for_each_read(graph, graph.nodes[i], [&](model::ValueId value) {
        if (constant[value] || last[value] == i) return;
        last[value] = i;
        visit(value, i);
      });
  };
  each([&](model::ValueId value, uint32_t) { ++first[value + 1]; });
  for (size_t v = 0; v < values; ++v) first[v + 1] += first[v];
  problem.readers.resize(first[values]);
  std::vector<uint32_t> fill(first.begin(), first.end() - 1);
  each([&](model::ValueId value, uint32_t reader) { problem.readers[fill[value]++] = reader; });

  std::vector<bool> made(values, false), wanted(values, false);
  for (model::ValueId value : graph.outputs) wanted[value] = true;
  const auto add = [&](model::ValueId value, uint32_t producer) {
    made[value] = true;
    const uint32_t count = first[value + 1] - first[value];
    const bool to_host = wanted[value] && producer != BP_NONE;
    if (count || to_host)
      problem.links.push_back({value, producer, first[value], count, to_host, value_bytes(graph, value)});
  };
  problem.links.reserve(values);
  problem.first_link.reserve(problem.nodes + 1);
  for (uint32_t i = 0; i < problem.nodes; ++i) {
    problem.first_link.push_back(static_cast<uint32_t>(problem.links.size()));
    for (model::ValueId value : graph.nodes[i].outputs)
      if (value != BP_NONE) add(value, i);
  }
  problem.first_link.push_back(static_cast<uint32_t>(problem.links.size()));
  for (model::ValueId v = 0; v < values; ++v)
    if (!made[v] && !constant[v]) add(v, BP_NONE);
}

}  // namespace

void Problem::ban(uint32_t group) {
  for (uint32_t node : groups[group].nodes) {
    seconds[size_t{node} * devices + groups[group].device] = kInfinite;
    group_of[groups[group].device][node] = BP_NONE;
  }
  groups[group].nodes.clear();
}

bool Problem::elsewhere(uint32_t node, uint32_t device) const {
  const uint32_t group = atomic_group(node, device);
  const std::span<const uint32_t> all = group == BP_NONE ? std::span(&node, 1) : std::span(groups[group].nodes);
  return std::ranges::all_of(all, [&](uint32_t i) {
    for (uint32_t d = 0; d < devices; ++d)
      if (d != device && can(i, d)) return true;
    return false;
  });
}

void Problem::exclude(uint32_t node, uint32_t device) {
  if (const uint32_t group = atomic_group(node, device); group != BP_NONE) return ban(group);
  seconds[size_t{node} * devices + device] = kInfinite;
}

Problem make_problem(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage,
                     const std::vector<uint32_t>& only) {
  Problem problem;
  problem.devices = static_cast<uint32_t>(coverage.size());
  problem.nodes = static_cast<uint32_t>(graph.nodes.size());
  add_links(graph, problem);

  problem.seconds.assign(size_t{problem.nodes} * problem.devices, Problem::kInfinite);
  for (uint32_t d = 0; d < problem.devices; ++d) {
    const DeviceCoverage& device = coverage[d];
    problem.launch.push_back(launch_seconds(*device.device));
    for (uint32_t i = 0; i < problem.nodes; ++i) {
      const NodeVerdict& verdict = device.nodes[i];
      if (!verdict.usable() || (only[i] != BP_NONE && only[i] != d)) continue;
      problem.seconds[size_t{i} * problem.devices + d] =
          node_seconds(graph, graph.nodes[i], verdict, device.device->info());
      if (verdict.part == 0) continue;
      problem.parts.resize(problem.seconds.size(), 0);
      problem.parts[size_t{i} * problem.devices + d] = verdict.part;
    }
  }
  for (uint32_t from = 0; from <= problem.devices; ++from)
    for (uint32_t to = 0; to <= problem.devices; ++to)
      problem.copies.push_back(copy_rate(from < problem.devices ? &coverage[from] : nullptr,
                                         to < problem.devices ? &coverage[to] : nullptr));
  add_groups(coverage, problem);
  return problem;
}

}  // namespace backplane
