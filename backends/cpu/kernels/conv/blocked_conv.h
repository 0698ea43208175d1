// SPDX-License-Identifier: Apache-2.0
// Convolutions of blocked tensors, computed in tiles (kernels/conv/tiled.h). Weights must be known at plan time.
#pragma once

#include "kernels/conv/onednn_conv.h"

namespace backplane::cpu {

// Returns why tiles cannot compute this convolution, or null if they can. Requires an input and a result that can be
// blocked (can_be_blocked in runtime/format.h).
const char* refuse_blocked_conv(const ConvPlan& conv, std::span<const Tensor> inputs);

Plan plan_blocked_conv(const PlanContext& context, const ConvPlan& conv, std::span<const Tensor> inputs,
                       PackedWeights& packed);

// Returns the plan for a step that has packed the weights, reads its first input and writes its result as blocked
// tensors, and has `inputs` inputs. If the step works in place (Step::inplace), its last input, a tensor to be added,
// is blocked too.
Plan blocked_plan(const ConvPlan& conv, size_t inputs, std::unique_ptr<Step> step);

}  // namespace backplane::cpu
