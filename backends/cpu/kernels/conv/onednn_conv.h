// SPDX-License-Identifier: Apache-2.0
// A convolution in float as oneDNN does it best: blocked, cut into shares of output channels.
#pragma once

#include "kernels/common/direct_conv.h"
#include "kernels/onednn/packed_weights.h"

namespace backplane::cpu {

struct ConvPlan {
  ConvSize size;
  Window window;
  std::span<const PostOp> post_ops;  // affine ones first: they become part of the weights
  int64_t shuffled_groups = 1;       // its input's channels are to be shuffled first (kernels/conv/channel_shuffle.h)
};

// Whether Winograd's transforms make this convolution faster than any other way.
bool prefers_winograd(const ConvPlan& conv);

// A plan without a step where oneDNN has no implementation. `inputs` are those of Conv; weights that are known are
// packed now.
Plan plan_onednn_conv(const ConvPlan& conv, std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
