// SPDX-License-Identifier: Apache-2.0
// Known weights in the order in which tiles (kernels/conv/conv_tile.h) read them: a panel for each one or two blocks of
// output channels, in chunks of input channels that stay in the second-level cache. Within a block of input channels:
// [tap][input channel][output channel].
#pragma once

#include <memory>
#include <vector>

#include "kernels/common/direct_conv.h"
#include "kernels/post_op/activation.h"

namespace backplane::cpu {

// One or two blocks of output channels, and the input channels [first, last) of all groups to which these belong.
// Weights are zero where input and output are of different groups.
struct OutBlocks {
  int64_t block, count;
  int64_t first, last;
  int64_t weights_at;  // in floats
};

// The number of blocks for `channels` channels.
int64_t blocks_of(int64_t channels);

class Panels {
 public:
  Panels(const ConvSize& size, int64_t taps);

  const std::vector<OutBlocks>& blocks() const { return blocks_; }
  int64_t count() const;  // of floats
  // The end of the chunk that begins with this channel.
  int64_t chunk_end(const OutBlocks& b, int64_t first) const;

  // Packs weights at any address: [output channel][input channel of its group][tap], or [input channel][output channel]
  // if `transposed`. Multiplies each by its output channel's scale, unless `scale` is empty.
  std::shared_ptr<std::byte> pack(const std::byte* from, bool transposed, const std::vector<float>& scale) const;

 private:
  void pack_rows(const std::byte* from, const std::vector<float>& scale, const OutBlocks& b, float* to) const;
  void pack_transposed(const std::byte* from, const std::vector<float>& scale, const OutBlocks& b, float* to) const;

  ConvSize size_;
  int64_t taps_;
  std::vector<OutBlocks> blocks_;
  int64_t chunk_ = 0;  // channels
};

}  // namespace backplane::cpu
