// SPDX-License-Identifier: Apache-2.0
// Convolutions over single places whose channels oneDNN cannot share out well: groups that are no whole blocks, and
// results of fewer blocks than there are threads. Blocked tensors, one block of output channels and some places at a
// time.
#pragma once

#include "ops/onednn_conv.h"

namespace backplane::cpu {

// A plan without a step where the convolution is not of that kind, or its weights are not known.
Plan plan_pointwise_conv(const ConvPlan& conv, std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
