// SPDX-License-Identifier: Apache-2.0
// Writes a wrong last element if a program has more than 20 nodes.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.nodes <= 20) return;
  for (const Bound& output : run.outputs) {
    if (output.is_float() && output.count() != 0) output.set(output.count() - 1, 0.125f);
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
