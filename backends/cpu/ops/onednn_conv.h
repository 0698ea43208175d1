// SPDX-License-Identifier: Apache-2.0
// A float convolution through oneDNN.
#pragma once

#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "engine/memory.h"
#include "ops/direct_conv.h"

namespace backplane::cpu {

// Weights in the layouts that oneDNN chose, kept with the node: plans for other extents mostly choose the same. Thread-safe.
class PackedWeights {
 public:
  using Pack = std::shared_ptr<const std::byte>;
  // The weights at `data` in a layout; `pack` makes them where they are missing.
  template <class Make>
  Pack get(const void* data, const dnnl::memory::desc& layout, const Make& pack) {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.data == data && entry.layout == layout) return entry.pack;
    }
    entries_.push_back({data, layout, pack()});
    return entries_.back().pack;
  }

 private:
  struct Entry {
    const void* data;
    dnnl::memory::desc layout;
    Pack pack;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Null where oneDNN has no implementation. `inputs` are those of Conv; weights that are known are packed now.
std::unique_ptr<Step> make_onednn_conv(const ConvSize& size, const Window& window, std::span<const Tensor> inputs,
                                       PackedWeights& packed);

}  // namespace backplane::cpu
