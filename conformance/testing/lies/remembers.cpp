// SPDX-License-Identifier: Apache-2.0
// Does not run if an instance's inputs equal those of the run before: the outputs may still hold the results.
#include "testing/wrapper.h"

namespace backplane::liar {

static bool same_as_before(Run& run) {
  bool same = run.memory.size() == run.inputs.size();
  for (size_t i = 0; same && i < run.inputs.size(); ++i) {
    const Bound& input = run.inputs[i];
    same = std::memcmp(run.memory[i].data(), input.bytes(), input.tensor.buffer.bytes) == 0;
  }
  run.memory.clear();
  for (const Bound& input : run.inputs) run.memory.emplace_back(input.bytes(), input.tensor.buffer.bytes);
  return same;
}

const Lie kLie = {.answered = same_as_before};

}  // namespace backplane::liar
