// SPDX-License-Identifier: Apache-2.0
// Recurrent layers in fp32 with packed weights.
#pragma once

#include "kernels/onednn/packed_weights.h"
#include "kernels/recurrent/recurrent.h"

namespace backplane::cpu {

// Weights that are known are packed now, others in each run. The caller must check the sequence lengths before each
// run.
std::unique_ptr<Step> make_recurrent(const PlanContext& context, const Layer& layer, RecurrentExtents extents,
                                     std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
