// SPDX-License-Identifier: Apache-2.0
// Recurrent layers in fp32 with packed weights.
#pragma once

#include "kernels/onednn/packed_weights.h"
#include "kernels/recurrent/recurrent.h"

namespace backplane::cpu {

// Returns the step of a layer. Weights that are known are packed now, others in each run. The caller must check before
// each run that the sequence lengths are in [0, times] (wrong_length).
std::unique_ptr<Step> make_recurrent(const PlanContext& context, const Layer& layer, RecurrentExtents extents,
                                     std::span<const Tensor> inputs, PackedWeights& packed);

}  // namespace backplane::cpu
