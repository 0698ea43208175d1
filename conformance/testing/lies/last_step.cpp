// SPDX-License-Identifier: Apache-2.0
// Makes the first element of each result of Loop and Scan too large by 0.01.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.op != "Loop" && run.op != "Scan") return;
  for (const Bound& output : run.outputs) {
    if (output.is_float() && output.count() != 0) output.set(0, output.get(0) + 0.01f);
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
