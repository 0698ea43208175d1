// SPDX-License-Identifier: Apache-2.0
// Dense plans, for callers that do not insert reorders between steps.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// Returns a plan that takes and returns dense tensors. If the operands of `plan` have another format, the new plan's
// step reorders them in scratch memory.
Plan with_dense_operands(const PlanContext& context, Plan plan, std::span<const Tensor> inputs);

}  // namespace backplane::cpu
