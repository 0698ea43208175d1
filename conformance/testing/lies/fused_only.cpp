// SPDX-License-Identifier: Apache-2.0
// Multiplies the results of programs of several nodes by 1.0001.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.nodes < 2) return;
  for (const Bound& output : run.outputs) {
    if (!output.is_float()) continue;
    for (uint64_t i = 0; i < output.count(); ++i) output.set(i, output.get(i) * 1.0001f);
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
