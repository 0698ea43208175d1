// SPDX-License-Identifier: Apache-2.0
#include "place/move_to.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mincut/minimum_cut.h"

namespace backplane {
namespace {

// Builds the network for the minimum cut. A vertex is a node, or nodes that must stay or move together, on the source's
// side if it keeps its device and on the sink's side if it moves. Helper vertices of two kinds represent "one of these
// readers moves" and "one of these readers stays", so that a value's copy counts once for any number of readers.
class Move {
 public:
  Move(const Problem& problem, const Assignment& assignment, uint32_t target, const std::vector<uint32_t>& sequence,
       double launch_weight, const std::vector<uint32_t>& together)
      : problem_(problem),
        assignment_(assignment),
        target_(target),
        sequence_(sequence),
        launch_weight_(launch_weight) {
    scale_costs();
    join_nodes(together);
    const uint32_t first_helper = static_cast<uint32_t>(costs_.sink_cost.size());
    for (uint32_t i = 0; i < problem_.nodes; ++i)
      if (assignment_[i] != target_) add_cost(i, problem_.at(i, assignment_[i]), problem_.at(i, target_));
    for (const Problem::Group& group : problem_.groups)
      if (group.saving > 0) add_saving(group);
    for (const Problem::Link& link : problem_.links)
      add_link(link.producer, problem_.readers_of(link), link.to_host,
               [&](uint32_t from, uint32_t to) { return from == to ? 0 : problem_.copy(from, to, link.bytes); });
    add_launches();
    renumber(first_helper);
  }

  Assignment solve() {
    const std::vector<bool> moves = minimum_cut(std::move(costs_));
    Assignment result(assignment_);
    for (uint32_t i = 0; i < problem_.nodes; ++i)
      if (vertex_[i] < kStays && moves[vertex_[i]]) result[i] = target_;
    return result;
  }

 private:
  static constexpr uint32_t kStays = BP_NONE - 1, kMoved = BP_NONE;  // no vertex: the node stays, or is on target_

  // Capacities are integers, so costs are scaled up. `sum` is an upper bound of their sum, and becomes 2^58, below the
  // limit in minimum_cut.h.
  void scale_costs() {
    double sum = 0, dearest = 0;
    for (uint32_t i = 0; i < problem_.nodes; ++i)
      for (uint32_t d : {assignment_[i], target_})
        if (problem_.can(i, d)) sum += problem_.at(i, d);
    for (const CopyRate& rate : problem_.copies) dearest = std::max(dearest, rate.seconds);
    double per_byte = 0, launch = 0;
    for (const CopyRate& rate : problem_.copies) per_byte = std::max(per_byte, rate.seconds_per_byte);
    for (const Problem::Link& link : problem_.links)
      sum += 2 * (problem_.devices + 1) * (2.0 + link.reader_count) * (dearest + per_byte * link.bytes);
    for (const Problem::Group& group : problem_.groups) sum += group.saving;
    for (double seconds : problem_.launch) launch = std::max(launch, seconds);
    sum += 2 * launch * launch_weight_ * static_cast<double>(sequence_.size());
    scale_ = sum > 0 ? 0x1p58 / sum : 0;
  }

  int64_t scaled(double seconds) const { return std::llround(seconds * scale_); }

  void join_nodes(const std::vector<uint32_t>& together) {
    vertex_.resize(problem_.nodes);
    std::vector<uint32_t> leader(problem_.nodes);
    for (uint32_t i = 0; i < problem_.nodes; ++i) leader[i] = i;
    const auto find = [&](uint32_t i) {
      while (leader[i] != i) i = leader[i] = leader[leader[i]];
      return i;
    };
    for (const Problem::Group& group : problem_.groups) {
      if (!group.atomic || group.nodes.empty()) continue;
      if (group.device != target_ && assignment_[group.nodes[0]] != group.device) continue;
      for (uint32_t i : group.nodes) {
        const uint32_t a = find(i), b = find(group.nodes[0]);
        leader[std::max(a, b)] = std::min(a, b);
      }
    }
    std::vector<uint32_t> first_of(together.empty() ? 0 : problem_.nodes,
                                   BP_NONE);  // by number in `together`: the first node that can move
    for (uint32_t i = 0; i < together.size(); ++i) {
      if (together[i] == BP_NONE || assignment_[i] == target_ || !problem_.can(i, target_)) continue;
      uint32_t& first = first_of[together[i]];
      first = first == BP_NONE ? i : first;
      const uint32_t a = find(i), b = find(first);
      leader[std::max(a, b)] = std::min(a, b);
    }
    std::vector<bool> may_move(problem_.nodes, true);
    for (uint32_t i = 0; i < problem_.nodes; ++i)
      if (!problem_.can(i, target_)) may_move[find(i)] = false;
    for (uint32_t i = 0; i < problem_.nodes; ++i) {
      const uint32_t first = find(i);
      if (assignment_[i] == target_)
        vertex_[i] = kMoved;
      else if (!may_move[first])
        vertex_[i] = kStays;
      else
        vertex_[i] = first == i || vertex_[first] >= kStays ? costs_.add_vertex() : vertex_[first];
    }
  }

  void add_cost(uint32_t node, double if_stays, double if_moves) {
    if (vertex_[node] < kStays) costs_.add_cost(vertex_[node], scaled(if_stays), scaled(if_moves));
  }

  // Returns a vertex that must be on the sink's side if any of `vertices` is (any_moves), or on the source's side if
  // any of them is (any_stays). A cut that violates this costs `most` more. `most` must be at least the cost that the
  // caller adds to the vertex.
  uint32_t any_moves(const std::vector<uint32_t>& vertices, int64_t most) {
    if (vertices.size() == 1) return vertices[0];
    const uint32_t any = costs_.add_vertex();
    for (uint32_t v : vertices) costs_.add_arc(any, v, most);
    return any;
  }
  uint32_t any_stays(const std::vector<uint32_t>& vertices, int64_t most) {
    if (vertices.size() == 1) return vertices[0];
    const uint32_t any = costs_.add_vertex();
    for (uint32_t v : vertices) costs_.add_arc(v, any, most);
    return any;
  }

  // Adds the saving of a group, which applies while all its nodes are on its device.
  void add_saving(const Problem::Group& group) {
    free_.clear();
    for (uint32_t i : group.nodes) {
      const bool on_device = assignment_[i] == group.device;
      if (group.device == target_ ? vertex_[i] == kStays : !on_device) return;
      if (vertex_[i] < kStays) free_.push_back(vertex_[i]);
    }
    if (free_.empty()) return;
    const int64_t saving = scaled(group.saving);
    if (group.device == target_)
      costs_.add_cost(any_stays(free_, saving), saving, 0);
    else
      costs_.add_cost(any_moves(free_, saving), 0, saving);
  }

  // Adds the cost of copying a value from its producer's device to its readers' devices and, if `to_host`, to the host.
  template <class Price>
  void add_link(uint32_t producer, std::span<const uint32_t> readers, bool to_host, const Price& price) {
    const uint32_t origin = producer == BP_NONE ? problem_.host() : assignment_[producer];
    const uint32_t from = producer == BP_NONE ? kStays : vertex_[producer];
    if (!to_host && from < kStays &&
        std::ranges::all_of(readers, [&](uint32_t reader) { return vertex_[reader] == from; }))
      return;

    // Readers that move need a copy only if the producer stays.
    if (const int64_t cost = from == kMoved ? 0 : scaled(price(origin, target_)); cost > 0) {
      free_.clear();
      bool certain = false;
      for (uint32_t reader : readers) {
        certain = certain || vertex_[reader] == kMoved;
        if (vertex_[reader] < kStays) free_.push_back(vertex_[reader]);
      }
      if (certain) {
        if (from < kStays) costs_.add_cost(from, cost, 0);
      } else if (!free_.empty()) {
        const uint32_t any = any_moves(free_, cost);
        if (from < kStays)
          costs_.add_arc(from, any, cost);
        else
          costs_.add_cost(any, 0, cost);
      }
    }

    // Adds the copies for readers that stay, one device at a time.
    present_.assign(problem_.devices + 1, false);
    for (uint32_t reader : readers) present_[assignment_[reader]] = true;
    if (to_host) present_[problem_.host()] = true;
    for (uint32_t place = 0; place <= problem_.devices; ++place) {
      if (!present_[place] || place == target_) continue;
      const int64_t while_stays = from == kMoved ? scaled(price(target_, place)) : scaled(price(origin, place));
      const int64_t while_moves = from == kStays ? while_stays : scaled(price(target_, place));
      if (while_stays == 0 && while_moves == 0) continue;
      free_.clear();
      bool certain = place == problem_.host();
      for (uint32_t reader : readers) {
        if (assignment_[reader] != place) continue;
        certain = certain || vertex_[reader] == kStays;
        if (vertex_[reader] < kStays) free_.push_back(vertex_[reader]);
      }
      if (certain) {
        if (from < kStays) costs_.add_cost(from, while_stays, while_moves);
        continue;
      }
      if (free_.empty()) continue;
      const uint32_t any = any_stays(free_, while_moves);
      costs_.add_cost(any, std::min(while_stays, while_moves), 0);
      if (while_moves > while_stays) costs_.add_arc(any, from, while_moves - while_stays);
      // The copy is more expensive while the producer stays. No arc can express that, so the difference counts even if
      // all readers move.
      if (while_moves < while_stays) costs_.add_cost(from, while_stays - while_moves, 0);
    }
  }

  void add_launches() {
    if (launch_weight_ == 0) return;
    for (size_t k = 0; k < sequence_.size(); ++k) {
      const auto price = [&](uint32_t from, uint32_t to) {
        return from == to ? 0 : launch_weight_ * problem_.launch[to];
      };
      const uint32_t node = sequence_[k];
      if (k == 0)
        add_cost(node, launch_weight_ * problem_.launch[assignment_[node]], launch_weight_ * problem_.launch[target_]);
      else
        add_link(sequence_[k - 1], {&node, 1}, false, price);
    }
  }

  // Renumbers the vertices so that each helper follows the first vertex that it is connected to.
  void renumber(uint32_t first_helper) {
    const size_t count = costs_.sink_cost.size();
    std::vector<uint32_t> anchor(count), number(count), first(count + 1, 0);
    std::iota(anchor.begin(), anchor.end(), 0);
    for (const CutCosts::Arc& arc : costs_.arcs)
      for (const auto& [v, other] : {std::pair{arc.from, arc.to}, std::pair{arc.to, arc.from}})
        if (v >= first_helper) anchor[v] = std::min(anchor[v], other);
    for (uint32_t place : anchor) ++first[place + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    for (size_t v = 0; v < count; ++v) number[v] = first[anchor[v]]++;
    const std::vector<int64_t> sink_cost = costs_.sink_cost;
    for (size_t v = 0; v < count; ++v) costs_.sink_cost[number[v]] = sink_cost[v];
    for (CutCosts::Arc& arc : costs_.arcs) arc.from = number[arc.from], arc.to = number[arc.to];
    for (uint32_t& v : vertex_)
      if (v < kStays) v = number[v];
  }

  const Problem& problem_;
  const Assignment& assignment_;
  const uint32_t target_;
  const std::vector<uint32_t>& sequence_;
  const double launch_weight_;
  double scale_ = 0;
  std::vector<uint32_t> vertex_;  // by node: its vertex, kStays or kMoved
  CutCosts costs_;
  std::vector<uint32_t> free_;
  std::vector<bool> present_;
};

}  // namespace

Assignment move_to(const Problem& problem, const Assignment& assignment, uint32_t target,
                   const std::vector<uint32_t>& sequence, double launch_weight, const std::vector<uint32_t>& together) {
  if (problem.before_step) problem.before_step();
  return Move(problem, assignment, target, sequence, launch_weight, together).solve();
}

}  // namespace backplane
