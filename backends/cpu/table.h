// SPDX-License-Identifier: Apache-2.0
// The table of all operators of this backend and the passes over its graphs.
#pragma once

#include "runtime/operators.h"

namespace backplane::cpu {

const Operators& operators();

}  // namespace backplane::cpu
