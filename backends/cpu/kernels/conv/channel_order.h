// SPDX-License-Identifier: Apache-2.0
// Convolutions whose input comes as it was before a channel shuffle (kernels/conv/channel_shuffle.h): their weights in
// that order instead. All weights are known.
#pragma once

#include "kernels/common/direct_conv.h"
#include "kernels/onednn/packed_weights.h"

namespace backplane::cpu {

class ChannelOrder {
 public:
  // Of a convolution of each channel by itself: its weights, its bias and what its post-operations have for channels,
  // for a result in the order of its input. The bias then counts among the post-operations' shifts.
  void pass(int64_t groups, std::vector<Tensor>& operands, std::vector<PostOp>& ops);

  // Of a convolution in groups: weights of a single one, with zeros where a channel is none of the group's.
  void spread(int64_t groups, std::vector<Tensor>& operands, ConvSize& size);

 private:
  PackedWeights weights_, bias_;
};

}  // namespace backplane::cpu
