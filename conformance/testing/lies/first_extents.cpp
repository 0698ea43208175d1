// SPDX-License-Identifier: Apache-2.0
// Computes at most as many elements as the first run's output had; the others are 0.
#include "testing/wrapper.h"

namespace backplane::liar {

static void shorten(Run& run) {
  if (run.number == 0) run.memory.assign(1, std::to_string(run.outputs[0].count()));
  const uint64_t limit = std::stoull(run.memory[0]);
  for (const Bound& output : run.outputs) {
    for (uint64_t i = limit; output.is_float() && i < output.count(); ++i) output.set(i, 0);
  }
}

const Lie kLie = {.after = shorten};

}  // namespace backplane::liar
