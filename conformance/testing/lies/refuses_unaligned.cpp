// SPDX-License-Identifier: Apache-2.0
// Refuses unaligned memory in the run with BP_UNSUPPORTED, which is allowed: no lie.
#include "testing/unaligned.h"
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.descriptor = refuse_unaligned_runs<BP_UNSUPPORTED>};

}  // namespace backplane::liar
