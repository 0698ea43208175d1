// SPDX-License-Identifier: Apache-2.0
// Plans for where no planner puts reorders between steps.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// The same plan for dense operands: its step reorders them itself, in its scratch memory.
Plan with_dense_operands(const PlanContext& context, Plan plan, std::span<const Tensor> inputs);

}  // namespace backplane::cpu
