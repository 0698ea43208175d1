// SPDX-License-Identifier: Apache-2.0
// Operators on 16-bit floats, computed by the kernel for FLOAT: inputs are converted, results are rounded once. Known
// weights are converted once.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

// Returns the kernel of a node with operands of a 16-bit type, for a row whose rule is kFp32 or kFp32Elements.
std::unique_ptr<Kernel> create_in_fp32(const Row& row, const Node& node);

}  // namespace backplane::cpu
