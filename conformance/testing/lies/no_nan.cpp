// SPDX-License-Identifier: Apache-2.0
// Replaces NaN by zero.
#include <cmath>

#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  for (const Bound& output : run.outputs) {
    if (!output.is_float()) continue;
    for (uint64_t i = 0; i < output.count(); ++i) output.set(i, std::isnan(output.get(i)) ? 0 : output.get(i));
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
