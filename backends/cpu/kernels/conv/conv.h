// SPDX-License-Identifier: Apache-2.0
// The kernel of Conv, for operators that do more to its result.
#pragma once

#include "runtime/kernel.h"

namespace backplane::cpu {

std::unique_ptr<Kernel> create_conv(const Node& node);

}  // namespace backplane::cpu
