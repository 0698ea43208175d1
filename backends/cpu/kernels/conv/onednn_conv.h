// SPDX-License-Identifier: Apache-2.0
// Float convolutions by oneDNN: blocked, and divided into shares of output channels.
#pragma once

#include <memory>

#include "kernels/common/direct_conv.h"
#include "kernels/onednn/packed_weights.h"

namespace backplane::cpu {

struct ConvPlan {
  ConvSize size;
  Window window;
  std::span<const PostOp> post_ops;  // affine ones first: they become part of the weights
  int64_t shuffled_groups = 1;       // groups of a shuffle that the input needs (kernels/conv/channel_shuffle.h)
};

// Whether Winograd convolution is the fastest implementation here.
bool prefers_winograd(const PlanContext& context, const ConvPlan& conv);

struct OnednnConvDescription;

// Returns null if oneDNN has no fast implementation or, with `winograd_only`, no Winograd convolution. `inputs` are
// Conv's.
std::shared_ptr<OnednnConvDescription> describe_onednn_conv(const PlanContext& context, const ConvPlan& conv,
                                                            std::span<const Tensor> inputs, bool winograd_only);

// Consumes the description, which was created for the same arguments. Packs weights that are known.
Plan plan_onednn_conv(OnednnConvDescription& description, const ConvPlan& conv, std::span<const Tensor> inputs,
                      PackedWeights& packed);

}  // namespace backplane::cpu
