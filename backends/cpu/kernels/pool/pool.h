// SPDX-License-Identifier: Apache-2.0
// The names of the implementations of MaxPool, AveragePool, LpPool and their global forms.
#pragma once

#include "runtime/choices.h"

namespace backplane::cpu {

ImplementationNames pool_implementations();

}  // namespace backplane::cpu
