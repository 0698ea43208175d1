// SPDX-License-Identifier: Apache-2.0
// Rounds the results of programs of several nodes upwards, each within its bound.
#include <cmath>

#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.nodes < 2) return;
  for (const Bound& output : run.outputs) {
    if (!output.is_float()) continue;
    for (uint64_t i = 0; i < output.count(); ++i) output.set(i, std::nextafter(output.get(i), HUGE_VALF));
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
