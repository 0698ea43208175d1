// SPDX-License-Identifier: Apache-2.0
#include "place/missed_speedup.h"

#include <algorithm>

namespace backplane {
namespace {

class Savings {
 public:
  Savings(const Problem& problem, const Solution& found) : problem_(problem), found_(found), wanted_(found.assignment) {
    for (uint32_t i = 0; i < problem.nodes; ++i)
      for (uint32_t d = 0; d < problem.devices; ++d)
        if (problem.at(i, d) < problem.at(i, wanted_[i]) && alone(i, d)) wanted_[i] = d;
    inputs_.resize(problem.nodes);
    const size_t places = problem.devices + 1;
    readers_at_.assign(problem.links.size() * places, 0);
    for (uint32_t l = 0; l < problem.links.size(); ++l) {
      for (uint32_t reader : problem.readers_of(problem.links[l])) {
        inputs_[reader].push_back(l);
        ++readers_at_[l * places + found.assignment[reader]];
      }
      readers_at_[l * places + problem.host()] = problem.links[l].to_host;
    }
    island_size_.assign(found.order.devices.size(), 0);
    for (uint32_t island : found.order.island) ++island_size_[island];
    seen_link_.assign(problem.links.size(), BP_NONE);
    inside_.assign(problem.links.size(), 0);
    region_.assign(problem.nodes, BP_NONE);
  }

  std::vector<MissedSpeedup> all() {
    std::vector<MissedSpeedup> missed_speedups;
    for (uint32_t i = 0; i < problem_.nodes; ++i) {
      if (wanted_[i] == found_.assignment[i] || region_[i] != BP_NONE) continue;
      MissedSpeedup saving{found_.order.island[i], wanted_[i], grow(i), 0};
      saving.seconds = cost_of_move(saving);
      if (saving.seconds > 0) missed_speedups.push_back(std::move(saving));
    }
    return missed_speedups;
  }

 private:
  bool alike(uint32_t a, uint32_t b) const {
    return wanted_[a] == wanted_[b] && found_.order.island[a] == found_.order.island[b];
  }

  // Returns the connected nodes around `first` that are in its island and have the same fastest device. Two nodes are
  // connected if one reads a value that the other writes.
  std::vector<uint32_t> grow(uint32_t first) {
    std::vector<uint32_t> nodes{first};
    region_[first] = first;
    const auto reach = [&](uint32_t from, uint32_t to) {
      if (to == BP_NONE || region_[to] != BP_NONE || !alike(from, to)) return;
      region_[to] = first;
      nodes.push_back(to);
    };
    for (size_t k = 0; k < nodes.size(); ++k) {
      const uint32_t i = nodes[k];
      for (uint32_t l : inputs_[i]) reach(i, problem_.links[l].producer);
      for (uint32_t l = problem_.first_link[i]; l < problem_.first_link[i + 1]; ++l)
        for (uint32_t reader : problem_.readers_of(problem_.links[l])) reach(i, reader);
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  // The seconds for copying the value of a link from `origin`, the device of its producer, to all readers' devices, if
  // `inside` of the readers move from `here` to `there`.
  double copies(uint32_t link, uint32_t origin, uint32_t here, uint32_t there, uint32_t inside) const {
    double sum = 0;
    for (uint32_t place = 0; place <= problem_.devices; ++place) {
      uint32_t readers = readers_at_[size_t{link} * (problem_.devices + 1) + place];
      if (place == here) readers -= inside;
      if (place == there) readers += inside;
      if (readers > 0 && place != origin) sum += problem_.copy(origin, place, problem_.links[link].bytes);
    }
    return sum;
  }

  double cost_of_move(const MissedSpeedup& saving) {
    const uint32_t region = saving.nodes[0], here = found_.assignment[region], there = saving.instead_of;
    double seconds = 0;
    // Whether the region reads from other nodes of its island, is read by them, or borders on a node on `there`.
    bool fed = false, read = false, adjacent = false;
    touched_.clear();
    const auto touch = [&](uint32_t link, uint32_t reads) {
      if (seen_link_[link] != region) inside_[link] = 0, touched_.push_back(link);
      seen_link_[link] = region;
      inside_[link] += reads;
    };
    const auto look = [&](uint32_t other, bool& mark) {
      if (other == BP_NONE || region_[other] == region) return;
      mark = mark || found_.order.island[other] == saving.island;
      adjacent = adjacent || found_.assignment[other] == there;
    };
    for (uint32_t i : saving.nodes) {
      seconds += problem_.at(i, there) - problem_.at(i, here);
      for (uint32_t l : inputs_[i]) {
        touch(l, 1);
        look(problem_.links[l].producer, fed);
      }
      for (uint32_t l = problem_.first_link[i]; l < problem_.first_link[i + 1]; ++l) {
        touch(l, 0);
        for (uint32_t reader : problem_.readers_of(problem_.links[l])) look(reader, read);
      }
    }
    for (uint32_t l : touched_) {
      const uint32_t producer = problem_.links[l].producer;
      const uint32_t origin = producer == BP_NONE ? problem_.host() : found_.assignment[producer];
      const uint32_t then = producer != BP_NONE && region_[producer] == region ? there : origin;
      seconds += copies(l, then, here, there, inside_[l]) - copies(l, origin, here, there, 0);
    }
    if (!adjacent) seconds += problem_.launch[there];
    if (fed && read) seconds += problem_.launch[here];
    if (island_size_[saving.island] == saving.nodes.size()) seconds -= problem_.launch[here];
    return seconds;
  }

  bool alone(uint32_t node, uint32_t device) const {
    return problem_.atomic_group(node, device) == BP_NONE &&
           problem_.atomic_group(node, found_.assignment[node]) == BP_NONE;
  }

  const Problem& problem_;
  const Solution& found_;
  Assignment wanted_;
  std::vector<std::vector<uint32_t>> inputs_;  // by node: the links (values with readers) that it reads
  std::vector<uint32_t> readers_at_;           // [link * (devices + 1) + device or host]: the number of readers
  std::vector<uint32_t> island_size_;
  std::vector<uint32_t> region_;  // by node: the first node of its region
  // seen_link_: by link, the last region examined that reads or writes it. inside_: by link, how many of its readers
  // are in that region. touched_: the links of the region being examined.
  std::vector<uint32_t> seen_link_, inside_, touched_;
};

}  // namespace

std::vector<MissedSpeedup> find_missed_speedups(const Problem& problem, const Solution& found) {
  return Savings(problem, found).all();
}

}  // namespace backplane
