// SPDX-License-Identifier: Apache-2.0
// Rounds fp32 inputs to fp16 before it computes.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.before = narrow_inputs, .after = restore_inputs};

}  // namespace backplane::liar
