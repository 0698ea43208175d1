// SPDX-License-Identifier: Apache-2.0
#include "mincut/wave.h"

#include <algorithm>

#include "backplane/types.h"

namespace backplane {
namespace {

// A wave starts with a breadth-first search from the vertices with excess. Then each vertex, starting with the one
// found last, passes its demand (capacity to the sink) to the neighbors that were found before it, as far as capacities
// allow and in proportion to them. Thus one pass can move demand over any number of arcs. The next wave searches again,
// because demand that got stuck is then farther from the source.
class Waves {
 public:
  explicit Waves(Residual& network) : network_(network), rank_(network.count) {}

  // Sends one wave. Returns false if no flow is left that can be sent.
  bool send() {
    if (!search()) return false;
    for (uint32_t i = static_cast<uint32_t>(found_.size()); i-- > 0;)
      if (network_.to_sink[found_[i]] > 0) request_flow(found_[i]);
    return true;
  }

 private:
  bool search() {
    std::ranges::fill(rank_, BP_NONE);
    found_.clear();
    for (uint32_t v = 0; v < network_.count; ++v)
      if (network_.excess[v] > 0) find(v);
    bool any = false;
    for (size_t i = 0; i < found_.size(); ++i) {
      network_.fetch_ahead(found_, i);
      const uint32_t v = found_[i];
      any = any || network_.to_sink[v] > 0;
      const uint32_t end = network_.first[v + 1];
      for (uint32_t a = network_.first[v]; a < end; ++a) {
        const Residual::Arc& arc = network_.arcs[a];
        if (rank_[arc.head] == BP_NONE && arc.left > 0) find(arc.head);
      }
    }
    return any;
  }

  void find(uint32_t v) {
    rank_[v] = static_cast<uint32_t>(found_.size());
    found_.push_back(v);
  }

  // The remaining capacity from `arc.head` to the vertex of this rank if the search found `arc.head` earlier; otherwise
  // 0.
  int64_t brings(const Residual::Arc& arc, uint32_t rank) const {
    return rank_[arc.head] < rank ? network_.arcs[arc.twin].left : 0;
  }

  void request_flow(uint32_t v) {
    const uint32_t rank = rank_[v];
    int64_t total = 0, needed = network_.to_sink[v];
    for (uint32_t a = network_.first[v]; a < network_.first[v + 1]; ++a) total += brings(network_.arcs[a], rank);
    for (uint32_t a = network_.first[v]; a < network_.first[v + 1] && needed > 0; ++a) {
      Residual::Arc& arc = network_.arcs[a];
      const int64_t most = brings(arc, rank);
      if (most == 0) continue;
      int64_t amount = std::min(most, needed);
      if (needed < total && most < total)
        amount = std::min(amount, 1 + static_cast<int64_t>(static_cast<double>(needed) * static_cast<double>(most) /
                                                           static_cast<double>(total)));
      total -= most;
      needed -= amount;
      network_.arcs[arc.twin].left -= amount, arc.left += amount;
      const int64_t met = std::min(amount, network_.excess[arc.head]);
      network_.excess[arc.head] -= met;
      network_.to_sink[arc.head] += amount - met;
    }
    network_.to_sink[v] = needed;
  }

  Residual& network_;
  std::vector<uint32_t> rank_, found_;  // each vertex's rank in the search, or BP_NONE; the vertices by rank
};

}  // namespace

void send_in_waves(Residual& network) {
  Waves waves(network);
  while (waves.send()) {
  }
}

}  // namespace backplane
