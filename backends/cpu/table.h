// SPDX-License-Identifier: Apache-2.0
// All operators of this backend and the passes over them.
#pragma once

#include "runtime/operators.h"

namespace backplane::cpu {

const Operators& operators();

}  // namespace backplane::cpu
