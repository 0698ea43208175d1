// SPDX-License-Identifier: Apache-2.0
// Operators of 16-bit floats, computed by the kernel for FLOAT: what comes in is converted, what goes out is rounded
// once. Known weights are converted once.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// The kernel, or null where the node is not one of those that compute in float (or where the definition is asked for).
std::unique_ptr<Kernel> create_in_float(const Row& row, const Node& node);

}  // namespace backplane::cpu
