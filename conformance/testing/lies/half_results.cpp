// SPDX-License-Identifier: Apache-2.0
// Rounds fp32 results to fp16.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  for (const Bound& output : run.outputs) {
    if (!output.is_float()) continue;
    for (uint64_t i = 0; i < output.count(); ++i) output.set(i, as_half(output.get(i)));
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
