// SPDX-License-Identifier: Apache-2.0
// Computes with 16-bit inputs behind a 32-bit interface.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.before = narrow_inputs, .after = restore_inputs};

}  // namespace backplane::liar
