// SPDX-License-Identifier: Apache-2.0
// Weights known at plan time in the layout that a kernel needs, packed once for all plans and instances of a program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/onednn/onednn.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// A node's packed weights, in each layout used so far. A plan for other extents rarely packs them again, because oneDNN
// usually chooses the same layouts. Thread-safe.
class PackedWeights {
 public:
  using Pack = std::shared_ptr<const std::byte>;
  using Layouts = std::vector<dnnl::memory::desc>;
  // Returns a packed copy of the known `weights`, made by pack(). The copy may depend on nothing but the weights,
  // `layouts` (those of its parts, which follow one another) and `order` (numbers that describe a kernel's own layout).
  // Calls pack() on the first use of these three, or every time if the weights are transient (known to one plan only).
  template <class Make>
  Pack get(const Tensor& weights, const Layouts& layouts, const Make& pack, std::span<const int64_t> order = {}) {
    if (weights.transient) return pack();
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.data == weights.data && entry.layouts == layouts && std::ranges::equal(entry.order, order))
        return entry.pack;
    }
    entries_.push_back({weights.data, layouts, {order.begin(), order.end()}, pack()});
    return entries_.back().pack;
  }

 private:
  struct Entry {
    const void* data;
    Layouts layouts;
    std::vector<int64_t> order;
    Pack pack;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace backplane::cpu
