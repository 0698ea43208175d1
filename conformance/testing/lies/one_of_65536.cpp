// SPDX-License-Identifier: Apache-2.0
// Makes Tanh wrong for one of the 65,536 FLOAT16 inputs.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (run.op != "Tanh" || run.inputs.empty() || run.inputs[0].tensor.dtype != BP_DTYPE_FLOAT16) return;
  const auto* x = reinterpret_cast<const uint16_t*>(run.inputs[0].bytes());
  auto* y = reinterpret_cast<uint16_t*>(run.outputs[0].bytes());
  for (uint64_t i = 0; i < run.inputs[0].count(); ++i) {
    if (x[i] == 0x3A57) y[i] ^= 0x0200;
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
