// SPDX-License-Identifier: Apache-2.0
// Returns right results in an instance's first ten runs and wrong ones in all later runs.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.number >= 10 && run.outputs[0].is_float()) run.outputs[0].set(0, run.outputs[0].get(0) + 1);
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
