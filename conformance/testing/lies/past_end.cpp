// SPDX-License-Identifier: Apache-2.0
// Writes a byte past the end of an output.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  run.outputs[0].bytes()[run.outputs[0].tensor.buffer.bytes] = 1;
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
