// SPDX-License-Identifier: Apache-2.0
// Moves every element one unit in the last place away from zero.
#include <cmath>

#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  for (const Bound& output : run.outputs) {
    if (!output.is_float()) continue;
    for (uint64_t i = 0; i < output.count(); ++i)
      output.set(i, std::nextafter(output.get(i), std::copysign(HUGE_VALF, output.get(i))));
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
