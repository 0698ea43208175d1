// SPDX-License-Identifier: Apache-2.0
// All operators of this backend, the passes over its programs, and the lists of implementations.
#pragma once

#include "runtime/operators.h"

namespace backplane::cpu {

const Operators& operators();

}  // namespace backplane::cpu
