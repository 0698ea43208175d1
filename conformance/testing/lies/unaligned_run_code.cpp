// SPDX-License-Identifier: Apache-2.0
// Refuses unaligned memory in the run, but not with BP_UNSUPPORTED.
// Reported: run returns BP_INVALID_ARGUMENT, not BP_UNSUPPORTED: memory of a slot is unaligned
#include "testing/unaligned.h"
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.descriptor = refuse_unaligned_runs<BP_INVALID_ARGUMENT>};

}  // namespace backplane::liar
