// SPDX-License-Identifier: Apache-2.0
// Flushes subnormal results to zero, but does not declare it.
#include <cfloat>
#include <cmath>

#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  for (const Bound& output : run.outputs) {
    if (!output.is_float()) continue;
    for (uint64_t i = 0; i < output.count(); ++i)
      output.set(i, std::fabs(output.get(i)) < FLT_MIN ? std::copysign(0.0f, output.get(i)) : output.get(i));
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
