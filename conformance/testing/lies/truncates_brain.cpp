// SPDX-License-Identifier: Apache-2.0
// Moves every second BFLOAT16 result one unit towards zero, as if it truncated instead of rounding.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  for (const Bound& output : run.outputs) {
    if (output.tensor.dtype != BP_DTYPE_BFLOAT16) continue;
    auto* y = reinterpret_cast<uint16_t*>(output.bytes());
    for (uint64_t i = 0; i < output.count(); i += 2) {
      if ((y[i] & 0x7FFF) > 1 && (y[i] & 0x7F80) != 0x7F80) --y[i];
    }
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
