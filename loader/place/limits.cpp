// SPDX-License-Identifier: Apache-2.0
#include "place/limits.h"

#include <algorithm>

namespace backplane {
namespace {

// Bytes of memory; 0: unlimited, or the device does not report them. Host memory counts as unlimited, because weights
// are mapped and unused pages can be dropped.
double memory_of(const Device& device) {
  return in_host_memory(device) ? 0 : static_cast<double>(device.info().memory_bytes);
}

}  // namespace

MemoryLimits::MemoryLimits(const model::Graph& graph, const std::vector<DeviceCoverage>& coverage)
    : graph_(graph), coverage_(coverage) {
  for (const DeviceCoverage& one : coverage) bounded_ = bounded_ || memory_of(*one.device) > 0;
}

Result<bool> MemoryLimits::hold(Problem& problem, const Assignment& assignment, std::vector<NoRoom>& no_room) const {
  if (!bounded_) return true;
  bool all = true;
  std::vector<uint32_t> held(graph_.values.size(), BP_NONE);  // for each weight: the device that last counted it
  for (uint32_t d = 0; d < problem.devices; ++d) {
    const double there = memory_of(*coverage_[d].device);
    if (there == 0) continue;
    double weights = 0, scratch = 0;
    bool over = false, given = false;
    const auto add = [&](uint32_t i) {
      double own = static_cast<double>(coverage_[d].nodes[i].bytes), fresh = 0;
      std::vector<model::ValueId> counted;  // the weights in `fresh`
      for (model::ValueId value : graph_.nodes[i].outputs)
        if (value != BP_NONE) own += least_value_bytes(graph_, value);
      for_each_read(graph_, graph_.nodes[i], [&](model::ValueId value) {
        if (graph_.values[value].weight == BP_NONE) {
          own += least_value_bytes(graph_, value);
        } else if (held[value] != d) {
          held[value] = d, fresh += least_value_bytes(graph_, value);
          counted.push_back(value);
        }
      });
      const double with_node = std::max(scratch, own);
      if (weights + fresh + with_node <= there || !problem.can(i, d) || !problem.elsewhere(i, d)) {
        weights += fresh;
        scratch = with_node;
        over = over || weights + scratch > there;
        return;
      }
      over = true;
      const uint32_t group = problem.atomic_group(i, d);
      for (uint32_t node : group == BP_NONE ? std::vector<uint32_t>{i} : problem.groups[group].nodes)
        no_room.push_back({node, d});
      problem.exclude(i, d);
      given = true;
      // The node's weights are not counted: the next node that reads them counts them.
      for (const model::ValueId value : counted) held[value] = BP_NONE;
    };
    // Nodes that no other device supports are added first.
    std::vector<uint32_t> movable;
    for (uint32_t i = 0; i < problem.nodes; ++i)
      if (assignment[i] == d) problem.elsewhere(i, d) ? movable.push_back(i) : add(i);
    for (uint32_t i : movable) add(i);
    if (over && !given)
      return Status(BP_RESOURCE_EXHAUSTED,
                    "device '" + coverage_[d].device->name() + "' has " +
                        std::to_string(coverage_[d].device->info().memory_bytes) +
                        " bytes of memory, but its nodes need " +
                        std::to_string(static_cast<uint64_t>(weights + scratch)) +
                        ", and no other device supports them: use a smaller model or list more devices");
    all = all && !over;
  }
  return all;
}

void limit_islands(const Problem& problem, uint32_t max_nodes, Solution& found) {
  const Order& whole = found.order;
  Order parts;
  parts.sequence = whole.sequence;
  parts.island.resize(problem.nodes);
  uint32_t size = 0, last_group = BP_NONE, last_island = BP_NONE;
  for (uint32_t node : whole.sequence) {
    const uint32_t group = problem.atomic_group(node, found.assignment[node]);
    const bool inside = group != BP_NONE && group == last_group;
    if (whole.island[node] != last_island || (size >= max_nodes && !inside)) {
      parts.devices.push_back(whole.devices[whole.island[node]]);
      size = 0;
    }
    parts.island[node] = static_cast<uint32_t>(parts.devices.size() - 1);
    last_group = group, last_island = whole.island[node], ++size;
  }
  if (parts.devices.size() == whole.devices.size()) return;
  found.order = std::move(parts);
  found.cost = cost_of(problem, found.assignment, found.order);
}

}  // namespace backplane
