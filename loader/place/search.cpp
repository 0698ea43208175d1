// SPDX-License-Identifier: Apache-2.0
#include "place/search.h"

#include <algorithm>
#include <optional>

#include "place/groups.h"
#include "place/move_to.h"
#include "place/region.h"

namespace backplane {
namespace {

// How many times something is tried on a graph of so many nodes: small models are searched more thoroughly than large
// ones.
uint32_t tries(uint32_t nodes, uint32_t most) {
  return std::clamp(100'000 / std::max(1u, nodes), 1u, most);
}
constexpr uint32_t kMaxRounds = 8;
// Of large graphs, launches move the borders of what a device has, or all of it: nodes farther inside stay together.
constexpr uint32_t kMargin = 50;

bool complete(const Labels& labels) {
  return std::ranges::find(labels, BP_NONE) == labels.end();
}

std::vector<uint32_t> list_order(uint32_t devices, uint32_t first) {
  std::vector<uint32_t> order{first};
  for (uint32_t d = 0; d < devices; ++d)
    if (d != first) order.push_back(d);
  return order;
}

Labels prefer(const Problem& problem, uint32_t device) {
  const std::vector<uint32_t> order = list_order(problem.devices, device);
  return assign(problem, [&](uint32_t) { return order.data(); });
}

// The cheaper of the two; of equals the first. A placement with fewer islands beyond the bound counts as cheaper.
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
  }

  // False: groups were banned on the way; start again.
  bool run() {
    Labels greedy = first_that_can(problem_);
    if (!complete(greedy)) {
      candidates_.push_back({std::move(greedy), {}, {}});
      return true;
    }
    if (!add(std::move(greedy))) return false;
    if (active_.size() < 2) return true;
    for (uint32_t d : active_)
      if (Labels labels = prefer(problem_, d); complete(labels) && !add(std::move(labels))) return false;
    if (active_.size() > 2 && !add_cheapest()) return false;
    sort();
    if (!cut()) return false;
    sort();
    const uint32_t starts = tries(problem_.nodes, static_cast<uint32_t>(candidates_.size()));
    bool launches = false;
    for (uint32_t d : active_) launches = launches || problem_.launch[d] > 0;
    for (uint32_t k = 0; launches && k < starts; ++k)
      if (!improve(k)) return false;
    sort();
    return true;
  }

  Solution best() { return std::move(candidates_.front()); }

 private:
  // Keeps the cheapest first.
  void sort() {
    std::ranges::stable_sort(candidates_,
                             [&](const Solution& a, const Solution& b) { return better(a, b, max_islands_); });
  }

  bool add(Labels labels) {
    if (untie(problem_, labels)) return false;
    for (const Solution& found : candidates_)
      if (found.labels == labels) return true;
    candidates_.push_back(evaluate(problem_, std::move(labels)));
    return true;
  }

  // Each node where it is cheapest by itself.
  bool add_cheapest() {
    std::vector<uint32_t> order;
    Labels labels = assign(problem_, [&](uint32_t node) {
      order = list_order(problem_.devices, 0);
      std::ranges::stable_sort(order, {}, [&](uint32_t d) { return problem_.at(node, d); });
      return order.data();
    });
    return !complete(labels) || add(std::move(labels));
  }

  // The cut of compute and copies alone.
  bool cut() {
    if (!base_.empty()) return !complete(base_) || add(move_to(problem_, base_, active_[1]));
    Solution found = candidates_.front();
    const auto additive = [](const Solution& f) { return f.cost.compute + f.cost.copies; };
    for (uint32_t round = 0; round < rounds_; ++round) {
      bool changed = false;
      for (uint32_t device : active_) {
        Labels labels = move_to(problem_, found.labels, device);
        if (labels == found.labels) continue;
        if (untie(problem_, labels)) return false;
        Solution next = evaluate(problem_, std::move(labels));
        if (additive(next) >= additive(found) * (1 - 1e-9)) continue;
        found = std::move(next);
        changed = true;
      }
      if (!changed) break;
    }
    return add(std::move(found.labels));
  }

  bool improve(size_t k) {
    Solution found = candidates_[k];
    std::vector<uint32_t> regions;
    if (rounds_ == 1) regions = inner_regions(problem_, found.labels, kMargin);
    for (uint32_t round = 0; round < rounds_; ++round) {
      bool changed = false;
      for (size_t a = base_.empty() ? 0 : 1; a < active_.size(); ++a) {
        Labels labels =
            move_to(problem_, base_.empty() ? found.labels : base_, active_[a], found.order.sequence, 1, regions);
        if (labels == found.labels) continue;
        if (untie(problem_, labels)) return false;
        Solution next = evaluate(problem_, std::move(labels));
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
  const uint32_t rounds_ = tries(problem_.nodes, kMaxRounds);
  std::vector<uint32_t> active_;  // devices that can have some node
  Labels base_;                   // two devices: as much as can be on the first
  std::vector<Solution> candidates_;
};

}  // namespace

Solution evaluate(const Problem& problem, Labels labels) {
  Solution found{std::move(labels), {}, {}};
  found.order = arrange(problem, found.labels);
  found.cost = cost_of(problem, found.labels, found.order);
  return found;
}

Labels first_that_can(const Problem& problem) {
  return prefer(problem, 0);
}

bool untie(Problem& problem, const Labels& labels) {
  if (std::ranges::none_of(problem.groups, &Problem::Group::atomic)) return false;
  const std::vector<uint32_t> knot = cyclic_groups(problem, labels);
  for (size_t k = knot.size() / 2; k < knot.size(); ++k) problem.ban(knot[k]);
  return !knot.empty();
}

Solution search(Problem& problem, uint32_t max_islands) {
  for (;;) {
    Search one(problem, max_islands);
    if (!one.run()) continue;
    Solution found = one.best();
    return max_islands && complete(found.labels) ? reduce(problem, std::move(found), max_islands) : found;
  }
}

Solution reduce(const Problem& problem, Solution found, uint32_t max_islands) {
  if (found.cost.islands <= max_islands) return found;
  Problem dear = problem;  // islands that cost nothing to launch would never be given up
  for (double& launch : dear.launch) launch = std::max(launch, 1e-6);
  for (double weight = 1; weight <= 0x1p30 && found.cost.islands > max_islands; weight *= 8)
    for (uint32_t device = 0; device < problem.devices; ++device) {
      Labels labels = move_to(dear, found.labels, device, found.order.sequence, weight);
      if (labels == found.labels || !cyclic_groups(problem, labels).empty()) continue;
      Solution next = evaluate(problem, std::move(labels));
      if (better(next, found, max_islands)) found = std::move(next);
    }
  return found;
}

}  // namespace backplane
