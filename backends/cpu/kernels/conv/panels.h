// SPDX-License-Identifier: Apache-2.0
// Weights known at plan time, in the order in which tiles (kernels/conv/conv_tile.h) read them. Each panel has the
// weights of one or two blocks of output channels, in chunks of input channels that stay in the second-level cache. Its
// layout is [block of input channels][tap][input channel][output channel].
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/common/direct_conv.h"
#include "kernels/post_op/activation.h"

namespace backplane::cpu {

// One or two blocks of output channels, beginning with `block`, and the input channels [first, last) of all their
// groups. Weights are zero where input and output channel are of different groups.
struct OutBlocks {
  int64_t block, count;
  int64_t first, last;
  int64_t weights_at;  // offset of their panel, in floats
};

// Returns the number of blocks that hold `channels` channels.
int64_t blocks_of(int64_t channels);

class Panels {
 public:
  Panels(const ConvSize& size, int64_t taps);

  const std::vector<OutBlocks>& blocks() const { return blocks_; }
  int64_t count() const;  // number of floats in all panels
  // Returns the end of the chunk that begins with input channel `first`.
  int64_t chunk_end(const OutBlocks& b, int64_t first) const;

  // Packs weights [output channel][input channel of its group][tap], or [input channel][output channel] if
  // `transposed`. `from` may be unaligned. Multiplies each weight by its output channel's scale, unless `scale` is
  // empty. `tap_at` has, for each tap of a panel, its index among the taps of `from`, or -1 if its weights
  // are 0; empty: the taps are in the same order.
  std::shared_ptr<std::byte> pack(const std::byte* from, bool transposed, const std::vector<float>& scale,
                                  std::span<const int64_t> tap_at = {}) const;

 private:
  void pack_rows(const std::byte* from, const std::vector<float>& scale, std::span<const int64_t> tap_at,
                 const OutBlocks& b, float* to) const;
  void pack_transposed(const std::byte* from, const std::vector<float>& scale, const OutBlocks& b, float* to) const;

  ConvSize size_;
  int64_t taps_;
  std::vector<OutBlocks> blocks_;
  int64_t chunk_ = 0;  // input channels per chunk
};

}  // namespace backplane::cpu
