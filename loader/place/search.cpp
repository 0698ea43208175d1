// SPDX-License-Identifier: Apache-2.0
#include "place/search.h"

#include <algorithm>
#include <optional>

#include "place/groups.h"
#include "place/interior.h"
#include "place/move_to.h"

namespace backplane {
namespace {

// The number of attempts, from 1 to `most`. Large models get fewer than small ones. So do models with many devices,
// because each attempt takes one step for each device.
uint32_t tries(uint32_t nodes, size_t devices, uint32_t most) {
  const uint64_t size = std::max<uint64_t>(1, uint64_t{nodes} * devices / 2);
  return static_cast<uint32_t>(std::clamp<uint64_t>(100'000 / size, 1, most));
}
constexpr uint32_t kMaxRounds = 8;
// In edges. In large graphs, nodes this close to a border between devices move one by one to save launches; nodes
// farther away move only together.
constexpr uint32_t kMargin = 50;

bool complete(const Assignment& assignment) {
  return std::ranges::find(assignment, BP_NONE) == assignment.end();
}

std::vector<uint32_t> list_order(uint32_t devices, uint32_t first) {
  std::vector<uint32_t> order{first};
  for (uint32_t d = 0; d < devices; ++d)
    if (d != first) order.push_back(d);
  return order;
}

Assignment prefer(const Problem& problem, uint32_t device) {
  const std::vector<uint32_t> order = list_order(problem.devices, device);
  return assign(problem, [&](uint32_t) { return order.data(); });
}

// Whether `a` is cheaper than `b`. The number of islands beyond the limit counts first, then the cost.
bool better(const Solution& a, const Solution& b, uint32_t max_islands) {
  const auto beyond = [&](const Solution& found) {
    return max_islands && found.cost.islands > max_islands ? found.cost.islands - max_islands : 0;
  };
  if (beyond(a) != beyond(b)) return beyond(a) < beyond(b);
  return a.cost.total() < b.cost.total() * (1 - 1e-12);
}

class Search {
 public:
  Search(Problem& problem, uint32_t max_islands) : problem_(problem), max_islands_(max_islands) {
    for (uint32_t d = 0; d < problem.devices; ++d) {
      uint32_t i = 0;
      while (i < problem.nodes && !problem.can(i, d)) ++i;
      if (i < problem.nodes) active_.push_back(d);
    }
    if (active_.size() == 2) base_ = prefer(problem, active_[0]);
    rounds_ = tries(problem.nodes, active_.size(), kMaxRounds);
  }

  // Returns false if groups were banned, so that the search must be restarted.
  bool run() {
    Assignment greedy = first_that_can(problem_);
    if (!complete(greedy)) {
      candidates_.push_back({std::move(greedy), {}, {}});
      return true;
    }
    if (!add(std::move(greedy))) return false;
    if (active_.size() < 2) return true;
    for (uint32_t d : active_)
      if (Assignment assignment = prefer(problem_, d); complete(assignment) && !add(std::move(assignment)))
        return false;
    if (active_.size() > 2 && !add_cheapest()) return false;
    sort();
    if (!cut()) return false;
    sort();
    const uint32_t starts = tries(problem_.nodes, active_.size(), static_cast<uint32_t>(candidates_.size()));
    bool launches = false;
    for (uint32_t d : active_) launches = launches || problem_.launch[d] > 0;
    for (uint32_t k = 0; launches && k < starts; ++k)
      if (!improve(k)) return false;
    sort();
    return true;
  }

  Solution best() { return std::move(candidates_.front()); }

 private:
  // Puts the cheapest first.
  void sort() {
    std::ranges::stable_sort(candidates_,
                             [&](const Solution& a, const Solution& b) { return better(a, b, max_islands_); });
  }

  bool add(Assignment assignment) {
    if (break_cycles(problem_, assignment)) return false;
    for (const Solution& found : candidates_)
      if (found.assignment == assignment) return true;
    candidates_.push_back(evaluate(problem_, std::move(assignment)));
    return true;
  }

  // Adds the placement in which each node is on the device that is cheapest for that node alone.
  bool add_cheapest() {
    std::vector<uint32_t> order;
    Assignment assignment = assign(problem_, [&](uint32_t node) {
      order = list_order(problem_.devices, 0);
      std::ranges::stable_sort(order, {}, [&](uint32_t d) { return problem_.at(node, d); });
      return order.data();
    });
    return !complete(assignment) || add(std::move(assignment));
  }

  // Adds a placement with low costs of compute and copies, ignoring launches: for two devices by one minimum cut; for
  // more, by moving nodes to one device after another while that lowers the costs, in at most `rounds_` rounds.
  bool cut() {
    if (!base_.empty()) return !complete(base_) || add(move_to(problem_, base_, active_[1]));
    Solution found = candidates_.front();
    const auto additive = [](const Solution& f) { return f.cost.compute + f.cost.copies; };
    for (uint32_t round = 0; round < rounds_; ++round) {
      bool changed = false;
      for (uint32_t device : active_) {
        Assignment assignment = move_to(problem_, found.assignment, device);
        if (assignment == found.assignment) continue;
        if (break_cycles(problem_, assignment)) return false;
        Solution next = evaluate(problem_, std::move(assignment));
        if (additive(next) >= additive(found) * (1 - 1e-9)) continue;
        found = std::move(next);
        changed = true;
      }
      if (!changed) break;
    }
    return add(std::move(found.assignment));
  }

  bool improve(size_t k) {
    Solution found = candidates_[k];
    std::vector<uint32_t> regions;
    if (rounds_ == 1) regions = label_interior(problem_, found.assignment, kMargin);
    for (uint32_t round = 0; round < rounds_; ++round) {
      bool changed = false;
      for (size_t a = base_.empty() ? 0 : 1; a < active_.size(); ++a) {
        Assignment assignment =
            move_to(problem_, base_.empty() ? found.assignment : base_, active_[a], found.order.sequence, 1, regions);
        if (assignment == found.assignment) continue;
        if (break_cycles(problem_, assignment)) return false;
        Solution next = evaluate(problem_, std::move(assignment));
        if (!better(next, found, max_islands_)) continue;
        found = std::move(next);
        changed = true;
      }
      if (!changed) break;
    }
    if (better(found, candidates_[k], max_islands_)) candidates_[k] = std::move(found);
    return true;
  }

  Problem& problem_;
  const uint32_t max_islands_;
  uint32_t rounds_ = 1;
  std::vector<uint32_t> active_;  // devices that support at least one node
  Assignment base_;               // with two devices: the assignment with as many nodes as possible on the first
  std::vector<Solution> candidates_;
};

}  // namespace

Solution evaluate(const Problem& problem, Assignment assignment) {
  if (problem.before_step) problem.before_step();
  Solution found{std::move(assignment), {}, {}};
  found.order = arrange(problem, found.assignment);
  found.cost = cost_of(problem, found.assignment, found.order);
  return found;
}

Assignment first_that_can(const Problem& problem) {
  return prefer(problem, 0);
}

bool break_cycles(Problem& problem, const Assignment& assignment) {
  if (std::ranges::none_of(problem.groups, &Problem::Group::atomic)) return false;
  const std::vector<uint32_t> cyclic = cyclic_groups(problem, assignment);
  for (size_t k = cyclic.size() / 2; k < cyclic.size(); ++k) problem.ban(cyclic[k]);
  return !cyclic.empty();
}

Solution search(Problem& problem, uint32_t max_islands) {
  for (;;) {
    Search one(problem, max_islands);
    if (!one.run()) continue;
    Solution found = one.best();
    return max_islands && complete(found.assignment) ? reduce(problem, std::move(found), max_islands) : found;
  }
}

Solution reduce(const Problem& problem, Solution found, uint32_t max_islands) {
  if (found.cost.islands <= max_islands) return found;
  Problem expensive = problem;  // without a launch cost, removing islands would save nothing
  for (double& launch : expensive.launch) launch = std::max(launch, 1e-6);
  for (double weight = 1; weight <= 0x1p30 && found.cost.islands > max_islands; weight *= 8)
    for (uint32_t device = 0; device < problem.devices; ++device) {
      Assignment assignment = move_to(expensive, found.assignment, device, found.order.sequence, weight);
      if (assignment == found.assignment || !cyclic_groups(problem, assignment).empty()) continue;
      Solution next = evaluate(problem, std::move(assignment));
      if (better(next, found, max_islands)) found = std::move(next);
    }
  return found;
}

}  // namespace backplane
