// SPDX-License-Identifier: Apache-2.0
// Dense plans, for callers that insert no reorders between steps.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// Returns a plan with dense operands: if necessary, its step reorders them in scratch memory.
Plan with_dense_operands(const PlanContext& context, Plan plan, std::span<const Tensor> inputs);

}  // namespace backplane::cpu
