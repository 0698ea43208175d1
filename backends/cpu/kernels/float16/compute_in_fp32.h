// SPDX-License-Identifier: Apache-2.0
// Computes operators on 16-bit floats by their kernels for FLOAT. Inputs are converted, and results are rounded once.
// Known weights (the inputs in Row::weights) are converted once for all plans, other known inputs once for each plan.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

// Creates the kernel of a node with operands of a 16-bit type. `row` is the operator's table entry, whose rule
// (Row::half) must be kFp32 or kFp32Elements.
std::unique_ptr<Kernel> create_in_fp32(const Row& row, const Node& node);

}  // namespace backplane::cpu
