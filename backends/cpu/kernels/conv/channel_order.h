// SPDX-License-Identifier: Apache-2.0
// Moves a channel shuffle (kernels/conv/channel_shuffle.h) from a convolution's input into its weights, which must be
// known: they are reordered instead.
#pragma once

#include "kernels/common/direct_conv.h"
#include "kernels/onednn/packed_weights.h"

namespace backplane::cpu {

class ChannelOrder {
 public:
  // For a depthwise convolution: reorders weights, bias and the post-operations' per-channel values, so that the result
  // has the order of the input. The bias becomes a shift of the post-operations.
  void pass(int64_t groups, std::vector<Tensor>& operands, std::vector<PostOp>& ops);

  // For a grouped convolution: expands the weights to those of a single group, with zeros between channels of different
  // groups.
  void spread(int64_t groups, std::vector<Tensor>& operands, ConvSize& size);

 private:
  PackedWeights weights_, bias_;
};

}  // namespace backplane::cpu
