// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backplane/types.h"
#include "place/residual.h"

namespace backplane {
namespace {

class Trees {
 public:
  Trees(Residual& network, uint64_t work) : network_(network), work_(static_cast<int64_t>(work)) {
    place_.assign(network.count, {});
    orphans_.resize(4);
    for (uint32_t v = 0; v < network.count; ++v) {
      if (network.excess[v] == 0 && network.to_sink[v] == 0) continue;
      const uint8_t side = network.excess[v] > 0 ? from_source : to_sink;
      place_[v] = {root, network.first[v], 1, side};
      frontier_[side].push_back(v);
    }
  }

  void run() {
    level_[from_source] = level_[to_sink] = 1;
    while (!frontier_[from_source].empty() && !frontier_[to_sink].empty() && work_ > 0)
      grow(frontier_[from_source].size() <= frontier_[to_sink].size() ? from_source : to_sink);
  }

 private:
  static constexpr uint8_t from_source = 0, to_sink = 1, none = 2;
  static constexpr uint32_t root = BP_NONE, orphan = BP_NONE - 1;

  struct Place {
    uint32_t parent = BP_NONE;  // arc to it, `root` or `orphan`
    uint32_t current = 0;       // arcs before it lead to no parent of this level
    uint32_t level = 0;
    uint8_t side = none;
  };

  // What can still flow along the arc in the direction in which flow of that side's tree goes: away from the vertex in
  // the sink's, towards it in the source's.
  int64_t left(uint8_t side, uint32_t arc) const {
    const Residual::Arc& a = network_.arcs[arc];
    return side == to_sink ? a.left : network_.arcs[a.twin].left;
  }
  int64_t& terminal(uint8_t side, uint32_t v) { return side == to_sink ? network_.to_sink[v] : network_.excess[v]; }

  void grow(uint8_t side) {
    std::vector<uint32_t>& now = frontier_[side];
    next_.clear();
    growing_ = side;
    for (size_t k = 0; k < now.size() && work_ > 0; ++k) {
      const uint32_t v = now[k];
      for (uint32_t a = network_.first[v]; a < network_.first[v + 1]; ++a) {
        if (place_[v].side != side || place_[v].level != level_[side]) break;
        --work_;
        const Residual::Arc& arc = network_.arcs[a];
        while (work_ > 0 && left(1 - side, a) > 0 && place_[arc.head].side == 1 - side && place_[v].side == side &&
               place_[v].level == level_[side])
          send(side == from_source ? a : arc.twin);
        if (place_[v].side != side || place_[v].level != level_[side]) break;
        if (left(1 - side, a) > 0 && place_[arc.head].side == none) {
          place_[arc.head] = {arc.twin, network_.first[arc.head], level_[side] + 1, side};
          next_.push_back(arc.head);
        }
      }
    }
    growing_ = none;
    ++level_[side];
    now.swap(next_);
  }

  // Along an arc from the source's tree to the sink's.
  void send(uint32_t bridge) {
    const uint32_t from = network_.arcs[network_.arcs[bridge].twin].head, to = network_.arcs[bridge].head;
    int64_t amount = network_.arcs[bridge].left;
    --work_;
    for (const auto& [start, side] : {std::pair{from, from_source}, std::pair{to, to_sink}}) {
      uint32_t v = start;
      for (; place_[v].parent != root; v = network_.arcs[place_[v].parent].head, --work_)
        amount = std::min(amount, left(side, place_[v].parent));
      amount = std::min(amount, terminal(side, v));
    }
    network_.arcs[bridge].left -= amount;
    network_.arcs[network_.arcs[bridge].twin].left += amount;
    for (const auto& [start, side] : {std::pair{from, from_source}, std::pair{to, to_sink}}) {
      uint32_t v = start;
      while (place_[v].parent != root) {
        Residual::Arc& up = network_.arcs[place_[v].parent];
        Residual::Arc& down = network_.arcs[up.twin];
        const uint32_t parent = up.head;
        (side == to_sink ? up : down).left -= amount;
        (side == to_sink ? down : up).left += amount;
        if ((side == to_sink ? up : down).left == 0) abandon(v);
        v = parent;
      }
      if ((terminal(side, v) -= amount) == 0) abandon(v);
      adopt(side);
    }
  }

  void abandon(uint32_t v) {
    place_[v].parent = orphan;
    if (orphans_.size() <= place_[v].level) orphans_.resize(2 * place_[v].level);
    orphans_[place_[v].level].push_back(v);
    last_orphan_ = std::max(last_orphan_, place_[v].level);
    first_orphan_ = std::min(first_orphan_, place_[v].level);
  }

  // Where the work is spent, orphans stay orphans: no more flow will be sent.
  void adopt(uint8_t side) {
    for (; first_orphan_ <= last_orphan_; ++first_orphan_)
      while (!orphans_[first_orphan_].empty()) {
        if (work_ <= 0) return;
        const uint32_t v = orphans_[first_orphan_].back();
        orphans_[first_orphan_].pop_back();
        find_parent(v, side);
      }
    first_orphan_ = BP_NONE;
    last_orphan_ = 0;
  }

  void find_parent(uint32_t v, uint8_t side) {
    Place& place = place_[v];
    for (uint32_t& a = place.current; a < network_.first[v + 1]; ++a, --work_) {
      const Place& other = place_[network_.arcs[a].head];
      if (other.side == side && other.level + 1 == place.level && left(side, a) > 0) {
        place.parent = a;
        return;
      }
    }
    // It leaves its level, so its children are orphans too.
    uint32_t best = BP_NONE, lowest = level_[side] + (growing_ == side);
    for (uint32_t a = network_.first[v]; a < network_.first[v + 1]; ++a, --work_) {
      const uint32_t u = network_.arcs[a].head;
      const Place& other = place_[u];
      if (other.side != side) continue;
      if (other.parent == network_.arcs[a].twin) abandon(u);
      if (other.level < lowest && left(side, a) > 0) best = a, lowest = other.level;
    }
    if (best == BP_NONE) {
      place = {};
      return;
    }
    place = {best, best, lowest + 1, side};
    if (place.level == level_[side])
      frontier_[side].push_back(v);
    else if (place.level > level_[side])
      next_.push_back(v);
  }

  Residual& network_;
  int64_t work_;
  std::vector<Place> place_;
  std::vector<uint32_t> frontier_[2], next_;  // the last level of each tree; that after it of the growing one
  uint32_t level_[2];
  uint8_t growing_ = none;
  std::vector<std::vector<uint32_t>> orphans_;  // by level
  uint32_t first_orphan_ = BP_NONE, last_orphan_ = 0;
};

}  // namespace

void send_nearby(Residual& network, uint64_t work) {
  Trees(network, work).run();
}

}  // namespace backplane
