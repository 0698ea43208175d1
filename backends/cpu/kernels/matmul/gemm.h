// SPDX-License-Identifier: Apache-2.0
// The kernel of Gemm, for operators that do more to its result.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_gemm(const Node& node);

}  // namespace backplane::cpu
