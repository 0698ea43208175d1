// SPDX-License-Identifier: Apache-2.0
#include "place/order.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace backplane {
namespace {

// The graph with atomic groups merged: a group whose nodes are all on the group's device is one unit, numbered as
// its first node. Every other node is a unit of its own.
class Units {
 public:
  Units(const Problem& problem, const Assignment& assignment)
      : problem_(problem), assignment_(assignment), unit_(problem.nodes) {
    for (uint32_t i = 0; i < problem.nodes; ++i) unit_[i] = i;
    for (uint32_t g = 0; g < problem.groups.size(); ++g) {
      const auto& group = problem.groups[g];
      if (!group.atomic || !std::ranges::all_of(group.nodes, [&](uint32_t i) { return assignment[i] == group.device; }))
        continue;
      for (uint32_t i : group.nodes) unit_[i] = group.nodes[0];
      if (group.nodes.size() > 1) grouped_ = true;
    }
  }

  uint32_t of(uint32_t node) const { return unit_[node]; }
  bool is(uint32_t node) const { return unit_[node] == node; }

  void for_each_node(uint32_t unit, const auto& visit) const {
    const uint32_t g = problem_.atomic_group(unit, assignment_[unit]);
    if (g == BP_NONE) return visit(unit);
    for (uint32_t i : problem_.groups[g].nodes) visit(i);
  }

  // Visits each unit that reads a value written by `unit`, once for each value and each node that reads it.
  void for_each_reader(uint32_t unit, const auto& visit) const {
    for_each_node(unit, [&](uint32_t i) {
      for (uint32_t l = problem_.first_link[i]; l < problem_.first_link[i + 1]; ++l)
        for (uint32_t reader : problem_.readers_of(problem_.links[l]))
          if (unit_[reader] != unit) visit(unit_[reader]);
    });
  }

  std::vector<uint32_t> read_counts() const {
    std::vector<uint32_t> counts(problem_.nodes, 0);
    for (uint32_t i = 0; i < problem_.nodes; ++i)
      if (is(i)) for_each_reader(i, [&](uint32_t reader) { ++counts[reader]; });
    return counts;
  }

  // The units in topological order; incomplete if there is a cycle. Without groups, the nodes are in order already.
  std::vector<uint32_t> sorted() const {
    std::vector<uint32_t> order;
    order.reserve(problem_.nodes);
    if (!grouped_) {
      for (uint32_t i = 0; i < problem_.nodes; ++i) order.push_back(i);
      return order;
    }
    std::vector<uint32_t> waiting = read_counts();
    for (uint32_t i = 0; i < problem_.nodes; ++i)
      if (is(i) && waiting[i] == 0) order.push_back(i);
    for (size_t k = 0; k < order.size(); ++k)
      for_each_reader(order[k], [&](uint32_t reader) {
        if (--waiting[reader] == 0) order.push_back(reader);
      });
    return order;
  }

 private:
  const Problem& problem_;
  const Assignment& assignment_;
  std::vector<uint32_t> unit_;
  bool grouped_ = false;
};

// For each node, a small number that stands for its device and part. Appends the device of each number to `devices`.
std::vector<uint32_t> owners(const Problem& problem, const Assignment& assignment, std::vector<uint32_t>& devices) {
  std::vector<uint32_t> owner(assignment);
  for (uint32_t d = 0; d < problem.devices; ++d) devices.push_back(d);
  if (problem.parts.empty()) return owner;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  for (uint32_t i = 0; i < problem.nodes; ++i) {
    const uint32_t part = problem.parts[size_t{i} * problem.devices + assignment[i]];
    if (part == 0) continue;
    const auto [at, added] = numbers.try_emplace({assignment[i], part}, static_cast<uint32_t>(devices.size()));
    if (added) devices.push_back(assignment[i]);
    owner[i] = at->second;
  }
  return owner;
}

}  // namespace

Order arrange(const Problem& problem, const Assignment& assignment) {
  const Units units(problem, assignment);
  std::vector<uint32_t> device_of;
  const std::vector<uint32_t> owner = owners(problem, assignment, device_of);

  // For each unit, the maximum number of owner changes on any path to the end of the graph.
  const std::vector<uint32_t> sorted = units.sorted();
  std::vector<uint32_t> changes(problem.nodes, 0);
  for (size_t k = sorted.size(); k-- > 0;)
    units.for_each_reader(sorted[k], [&](uint32_t reader) {
      changes[sorted[k]] = std::max(changes[sorted[k]], changes[reader] + (owner[reader] != owner[sorted[k]]));
    });

  struct Ready {
    std::vector<uint32_t> units;
    uint32_t changes = 0;
    uint32_t version = 0;  // queue entries with another version are outdated
  };
  std::vector<Ready> ready(device_of.size());
  // Owners with ready units. The owner with the most changes of owner on a path to the end of the graph comes first; on
  // a tie, the one with the cheaper launch, and then the one with the lower number.
  std::priority_queue<std::tuple<uint32_t, double, int64_t, uint32_t>> queue;
  const auto offer = [&](uint32_t unit) {
    const uint32_t o = owner[unit];
    Ready& r = ready[o];
    r.units.push_back(unit);
    if (r.units.size() > 1 && r.changes >= changes[unit]) return;
    r.changes = changes[unit];
    queue.emplace(r.changes, -problem.launch[device_of[o]], -int64_t{o}, r.version);
  };

  Order order;
  order.island.resize(problem.nodes);
  order.sequence.reserve(problem.nodes);
  std::vector<uint32_t> waiting = units.read_counts();
  for (uint32_t i = 0; i < problem.nodes; ++i)
    if (units.is(i) && waiting[i] == 0) offer(i);
  while (!queue.empty()) {
    const auto [most, launch, negative, version] = queue.top();
    queue.pop();
    const uint32_t o = static_cast<uint32_t>(-negative);
    if (ready[o].version != version) continue;
    ++ready[o].version;
    std::vector<uint32_t> running = std::move(ready[o].units);
    ready[o].units.clear();
    const uint32_t island = static_cast<uint32_t>(order.devices.size());
    order.devices.push_back(device_of[o]);
    while (!running.empty()) {  // depth first, which keeps connected nodes together
      const uint32_t unit = running.back();
      running.pop_back();
      units.for_each_node(unit, [&](uint32_t i) {
        order.island[i] = island;
        order.sequence.push_back(i);
      });
      units.for_each_reader(unit, [&](uint32_t reader) {
        if (--waiting[reader] > 0) return;
        if (owner[reader] == o)
          running.push_back(reader);
        else
          offer(reader);
      });
    }
  }
  return order;
}

std::vector<uint32_t> cyclic_groups(const Problem& problem, const Assignment& assignment) {
  const Units units(problem, assignment);
  std::vector<bool> left(problem.nodes, false);
  for (uint32_t i = 0; i < problem.nodes; ++i) left[i] = units.is(i);
  for (uint32_t unit : units.sorted()) left[unit] = false;
  // The remaining units are on cycles or follow them. Repeatedly removes units that no other remaining unit reads.
  std::vector<uint32_t> counts(problem.nodes, 0), ends;
  std::vector<std::vector<uint32_t>> reads(problem.nodes);
  for (uint32_t i = 0; i < problem.nodes; ++i) {
    if (!left[i]) continue;
    units.for_each_reader(i, [&](uint32_t reader) {
      if (left[reader]) ++counts[i], reads[reader].push_back(i);
    });
    if (counts[i] == 0) ends.push_back(i);
  }
  while (!ends.empty()) {
    const uint32_t unit = ends.back();
    ends.pop_back();
    left[unit] = false;
    for (uint32_t producer : reads[unit])
      if (--counts[producer] == 0) ends.push_back(producer);
  }
  std::vector<uint32_t> groups;
  for (uint32_t g = 0; g < problem.groups.size(); ++g) {
    const auto& group = problem.groups[g];
    if (group.atomic && !group.nodes.empty() && left[group.nodes[0]] && units.of(group.nodes.back()) == group.nodes[0])
      groups.push_back(g);
  }
  return groups;
}

bool together(const Problem::Group& group, const Assignment& assignment, const Order& order) {
  return std::ranges::all_of(group.nodes, [&](uint32_t i) {
    return assignment[i] == group.device && order.island[i] == order.island[group.nodes[0]];
  });
}

Cost cost_of(const Problem& problem, const Assignment& assignment, const Order& order) {
  Cost cost;
  for (uint32_t i = 0; i < problem.nodes; ++i) cost.compute += problem.at(i, assignment[i]);
  for (const Problem::Group& group : problem.groups)
    if (group.saving > 0 && together(group, assignment, order)) cost.compute -= group.saving;
  for_each_copy(problem, assignment, [&](const Problem::Link&, uint32_t, double seconds) { cost.copies += seconds; });
  for (uint32_t device : order.devices) cost.launches += problem.launch[device];
  cost.islands = static_cast<uint32_t>(order.devices.size());
  return cost;
}

}  // namespace backplane
