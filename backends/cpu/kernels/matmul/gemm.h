// SPDX-License-Identifier: Apache-2.0
// The kernel of Gemm, for operators that extend it.
#pragma once

#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_gemm(const Node& node);

}  // namespace backplane::cpu
