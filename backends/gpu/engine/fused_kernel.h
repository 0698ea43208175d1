// SPDX-License-Identifier: Apache-2.0
// Generates one kernel for a chain of formulas.
#pragma once

#include "engine/planner.h"

namespace backplane::gpu {

// Computes an expression into `y`, with strides along the expression's dimensions: generates its kernel.
// (engine/fused_kernel.cpp)
void emit_expression(Emit& e, const Expression& expression, const View& y);

}  // namespace backplane::gpu
