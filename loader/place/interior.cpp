// SPDX-License-Identifier: Apache-2.0
#include "place/interior.h"

#include <algorithm>

namespace backplane {
namespace {

// For each node, the links that it writes or reads. (A link is a value with readers; see problem.h.)
class Neighborhood {
 public:
  explicit Neighborhood(const Problem& problem) : problem_(problem), first_(problem.nodes + 1, 0) {
    for (uint32_t reader : problem.readers) ++first_[reader + 1];
    for (uint32_t i = 0; i < problem.nodes; ++i) first_[i + 1] += first_[i];
    read_.resize(first_[problem.nodes]);
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (uint32_t l = 0; l < problem.links.size(); ++l)
      for (uint32_t reader : problem.readers_of(problem.links[l])) read_[next[reader]++] = l;
  }

  // Visits each link that the node writes or reads, except links from the host.
  template <class Visit>
  void for_each_link(uint32_t node, const Visit& visit) const {
    for (uint32_t l = problem_.first_link[node]; l < problem_.first_link[node + 1]; ++l) visit(l);
    for (uint32_t k = first_[node]; k < first_[node + 1]; ++k)
      if (problem_.links[read_[k]].producer != BP_NONE) visit(read_[k]);
  }

 private:
  const Problem& problem_;
  std::vector<uint32_t> first_, read_;  // the links that node i reads: read_[first_[i]] … read_[first_[i + 1] - 1]
};

template <class Visit>
void for_each_end(const Problem& problem, uint32_t link, const Visit& visit) {
  visit(problem.links[link].producer);
  for (uint32_t reader : problem.readers_of(problem.links[link])) visit(reader);
}

}  // namespace

std::vector<uint32_t> label_interior(const Problem& problem, const Assignment& assignment, uint32_t margin) {
  const Neighborhood around(problem);
  std::vector<bool> near(problem.nodes, false), seen(problem.links.size(), false);
  std::vector<uint32_t> front, next;
  const auto come_near = [&](uint32_t node) {
    if (near[node]) return;
    near[node] = true;
    next.push_back(node);
  };
  for (uint32_t l = 0; l < problem.links.size(); ++l) {
    const Problem::Link& link = problem.links[l];
    if (link.producer == BP_NONE) continue;
    const auto abroad = [&](uint32_t reader) { return assignment[reader] != assignment[link.producer]; };
    if (std::ranges::any_of(problem.readers_of(link), abroad)) for_each_end(problem, l, come_near);
  }
  // Breadth-first search. Follows each link once, from the first node that reaches it.
  const auto follow = [&](uint32_t node, const auto& visit) {
    around.for_each_link(node, [&](uint32_t l) {
      if (seen[l]) return;
      seen[l] = true;
      for_each_end(problem, l, visit);
    });
  };
  for (uint32_t step = 0; step < margin && !next.empty(); ++step) {
    front.swap(next);
    next.clear();
    for (uint32_t node : front) follow(node, come_near);
  }

  std::vector<uint32_t> region(problem.nodes, BP_NONE);
  for (uint32_t i = 0; i < problem.nodes; ++i) {
    if (near[i] || region[i] != BP_NONE) continue;
    region[i] = i;
    front.assign(1, i);
    for (size_t k = 0; k < front.size(); ++k)
      follow(front[k], [&](uint32_t node) {
        if (near[node] || region[node] != BP_NONE) return;
        region[node] = i;
        front.push_back(node);
      });
  }
  return region;
}

}  // namespace backplane
