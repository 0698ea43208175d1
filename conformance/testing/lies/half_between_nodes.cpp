// SPDX-License-Identifier: Apache-2.0
// Where several nodes are one program, what goes in is kept in 16 bits.
#include "testing/wrapper.h"

namespace backplane::liar {

static void round(Run& run) {
  run.memory.clear();
  for (const Bound& input : run.inputs) {
    run.memory.emplace_back(input.bytes(), input.tensor.buffer.bytes);
    if (!input.is_float() || run.nodes < 2) continue;
    for (uint64_t i = 0; i < input.count(); ++i) input.set(i, static_cast<float>(static_cast<_Float16>(input.get(i))));
  }
}

static void restore(Run& run) {
  for (size_t i = 0; i < run.memory.size(); ++i)
    std::memcpy(run.inputs[i].bytes(), run.memory[i].data(), run.memory[i].size());
}

const Lie kLie = {.before = round, .after = restore};

}  // namespace backplane::liar
