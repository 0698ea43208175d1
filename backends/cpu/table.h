// SPDX-License-Identifier: Apache-2.0
// Looking up rows beyond `find_row` of kernel.h.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

// The oldest row of an operator, whatever its version, or null: tells "unknown operator" from "unknown form of it".
const Row* find_operator(const Node& node);

// The kernel of a node that the row accepted: the row's, or one that lets it compute in float.
std::unique_ptr<Kernel> create_kernel(const Row& row, const Node& node);

}  // namespace backplane::cpu
