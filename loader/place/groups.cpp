// SPDX-License-Identifier: Apache-2.0
#include "place/groups.h"

#include <algorithm>

#include "place/order.h"

namespace backplane {
namespace {

bool is_sound(const NodeGroup& group, uint32_t device, const Problem& problem) {
  return std::ranges::all_of(group.nodes, [&](uint32_t i) {
    const size_t at = size_t{i} * problem.devices + device, first = size_t{group.nodes[0]} * problem.devices + device;
    return problem.can(i, device) && problem.group_of[device][i] == BP_NONE &&
           (problem.parts.empty() || problem.parts[at] == problem.parts[first]);
  });
}

void add_group(const NodeGroup& group, uint32_t device, Problem& problem) {
  double sum = 0;
  for (uint32_t i : group.nodes) {
    problem.group_of[device][i] = static_cast<uint32_t>(problem.groups.size());
    sum += problem.at(i, device);
  }
  const double seconds = group.seconds > 0 && group.seconds < Problem::kInfinite ? group.seconds : sum;
  if (group.atomic)
    for (uint32_t i : group.nodes)
      problem.seconds[size_t{i} * problem.devices + device] = seconds / static_cast<double>(group.nodes.size());
  problem.groups.push_back({device, group.nodes, group.atomic, group.atomic ? 0 : std::max(0.0, sum - seconds)});
}

}  // namespace

void add_groups(const std::vector<DeviceCoverage>& coverage, Problem& problem) {
  problem.group_of.resize(problem.devices);
  for (uint32_t d = 0; d < problem.devices; ++d) {
    if (coverage[d].groups.empty()) continue;
    problem.group_of[d].assign(problem.nodes, BP_NONE);
    std::vector<bool> bound(problem.nodes, false);  // nodes that the device supports only in a group
    for (const NodeGroup& group : coverage[d].groups) {
      for (uint32_t i : group.nodes) bound[i] = bound[i] || group.atomic;
      if (is_sound(group, d, problem)) add_group(group, d, problem);
    }
    for (uint32_t i = 0; i < problem.nodes; ++i)
      if (bound[i] && problem.atomic_group(i, d) == BP_NONE)
        problem.seconds[size_t{i} * problem.devices + d] = Problem::kInfinite;
    // Bans groups until the remaining groups of this device form no cycle.
    const Assignment all(problem.nodes, d);
    for (std::vector<uint32_t> cycle; !(cycle = cyclic_groups(problem, all)).empty();)
      for (size_t k = cycle.size() / 2; k < cycle.size(); ++k) problem.ban(cycle[k]);
  }
}

namespace {

class Assigner {
 public:
  explicit Assigner(const Problem& problem)
      : problem_(problem),
        assignment_(problem.nodes, BP_NONE),
        open_(problem.seconds.size()),
        choices_(problem.nodes, 0) {
    for (uint32_t i = 0; i < problem.nodes; ++i)
      for (uint32_t d = 0; d < problem.devices; ++d)
        if (problem.can(i, d)) open_[index(i, d)] = true, ++choices_[i];
    for (uint32_t i = 0; i < problem.nodes; ++i)
      for (uint32_t d = 0; d < problem.devices; ++d)
        if (!problem.can(i, d)) close_group(i, d);
    decide_forced();
  }

  void decide(uint32_t node, const uint32_t* preference) {
    if (assignment_[node] != BP_NONE) return;
    for (uint32_t k = 0; k < problem_.devices; ++k) {
      if (!open_[index(node, preference[k])]) continue;
      take(node, preference[k]);
      return decide_forced();
    }
  }

  Assignment result() { return std::move(assignment_); }

 private:
  size_t index(uint32_t node, uint32_t device) const { return size_t{node} * problem_.devices + device; }

  void take(uint32_t node, uint32_t device) {
    const uint32_t g = problem_.atomic_group(node, device);
    if (g == BP_NONE) return assign_one(node, device);
    for (uint32_t i : problem_.groups[g].nodes) assign_one(i, device);
  }

  void assign_one(uint32_t node, uint32_t device) {
    assignment_[node] = device;
    for (uint32_t d = 0; d < problem_.devices; ++d)
      if (d != device) close(node, d);
  }

  void close(uint32_t node, uint32_t device) {
    if (!open_[index(node, device)]) return;
    open_[index(node, device)] = false;
    if (--choices_[node] == 1 && assignment_[node] == BP_NONE) forced_.push_back(node);
    close_group(node, device);
  }

  void close_group(uint32_t node, uint32_t device) {
    if (const uint32_t g = problem_.atomic_group(node, device); g != BP_NONE)
      for (uint32_t i : problem_.groups[g].nodes) close(i, device);
  }

  void decide_forced() {
    while (!forced_.empty()) {
      const uint32_t node = forced_.back();
      forced_.pop_back();
      for (uint32_t d = 0; d < problem_.devices && assignment_[node] == BP_NONE; ++d)
        if (open_[index(node, d)]) take(node, d);
    }
  }

  const Problem& problem_;
  Assignment assignment_;
  std::vector<bool> open_;  // indexed as Problem::seconds: whether the node can still be on the device
  std::vector<uint32_t> choices_, forced_;
};

}  // namespace

Assignment assign(const Problem& problem, const std::function<const uint32_t*(uint32_t node)>& preference) {
  Assigner assigner(problem);
  // Assigns nodes that have only one device first.
  for (const bool single : {true, false})
    for (uint32_t i = 0; i < problem.nodes; ++i) {
      uint32_t choices = 0;
      for (uint32_t d = 0; single && d < problem.devices; ++d) choices += problem.can(i, d);
      if (!single || choices == 1) assigner.decide(i, preference(i));
    }
  return assigner.result();
}

}  // namespace backplane
