// SPDX-License-Identifier: Apache-2.0
// Returns the results of an instance's first run in all its later ones.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const Bound& output = run.outputs[i];
    if (run.number == 0)
      run.memory.emplace_back(output.bytes(), output.tensor.buffer.bytes);
    else
      std::memcpy(output.bytes(), run.memory[i].data(), run.memory[i].size());
  }
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
