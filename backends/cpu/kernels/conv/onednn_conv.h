// SPDX-License-Identifier: Apache-2.0
// Float convolutions by oneDNN, on blocked tensors where possible. A convolution is divided into shares of output
// channels, which run in parallel.
#pragma once

#include <memory>

#include "kernels/common/direct_conv.h"
#include "kernels/onednn/packed_weights.h"
#include "kernels/post_op/post_op.h"

namespace backplane::cpu {

struct ConvPlan {
  ConvSize size;
  Window window;
  std::span<const PostOp> post_ops;  // affine ones come first and become part of weights and bias
  int64_t shuffled_groups = 1;       // groups of the channel shuffle that the input still needs; 1: none
};

// Whether Winograd is expected to be the fastest implementation of this convolution.
bool prefers_winograd(const PlanContext& context, const ConvPlan& conv);

struct OnednnConvDescription;

// Describes the convolution to oneDNN. Returns null if oneDNN has no fast implementation or, with `winograd_only`, no
// Winograd convolution. `inputs` are the Conv's.
std::shared_ptr<OnednnConvDescription> describe_onednn_conv(const PlanContext& context, const ConvPlan& conv,
                                                            std::span<const Tensor> inputs, bool winograd_only);

// Whether oneDNN computes the convolution as matrix products, which is slow for those with one channel in each group.
bool is_by_products(const OnednnConvDescription& description);

// `description` must be for the same arguments; it cannot be used again. Packs the weights if they are known.
Plan plan_onednn_conv(OnednnConvDescription& description, const ConvPlan& conv, std::span<const Tensor> inputs,
                      PackedWeights& packed);

}  // namespace backplane::cpu
