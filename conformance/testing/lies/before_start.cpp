// SPDX-License-Identifier: Apache-2.0
// Writes a byte before an output.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  run.outputs[0].bytes()[-1] = 1;
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
