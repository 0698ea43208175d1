// SPDX-License-Identifier: Apache-2.0
// Removes a channel shuffle (kernels/conv/channel_shuffle.h) of a convolution's input by reordering the weights
// instead. The weights must be known.
#pragma once

#include "kernels/common/direct_conv.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/post_op/post_op.h"

namespace backplane::cpu {

class ChannelOrder {
 public:
  // For a depthwise convolution: reorders weights, bias and the post-operations' per-channel values, so that the result
  // has the channel order of the input before the shuffle. If there is a bias, an affine post-operation is added, so
  // that kernels fold the reordered bias when planning instead of reading the node's bias in each run.
  void pass(int64_t groups, std::vector<Tensor>& operands, std::vector<PostOp>& ops);

  // For a grouped convolution: expands the weights of all groups to those of a single group, with zeros where input and
  // output channel are of different groups.
  void spread(int64_t groups, std::vector<Tensor>& operands, ConvSize& size);

 private:
  PackedWeights weights_, bias_;
};

}  // namespace backplane::cpu
