// SPDX-License-Identifier: Apache-2.0
// Generates one kernel for a chain of formulas.
#pragma once

#include "engine/planner.h"

namespace backplane::gpu {

// Adds a launch that computes an expression into `y`, whose strides are along the expression's dimensions, and
// generates its kernel.
void emit_expression(Emit& e, const Expression& expression, const View& y);

}  // namespace backplane::gpu
