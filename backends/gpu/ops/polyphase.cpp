// SPDX-License-Identifier: Apache-2.0
#include "ops/polyphase.h"

namespace backplane::gpu {

Tensor to_polyphase(Emit& e, const Window& w, const Tensor& x) {
  if (w.in_place()) return x;
  const Spatial phases = w.phases(), positions = w.positions();
  const int64_t planes = x.shape[0] * x.shape[1], each = phases[0] * phases[1] * phases[2];
  // Adjacent elements are copied by adjacent work items on a GPU, and by one work item on a CPU.
  const int64_t lanes = e.caps().kind == BP_DEVICE_CPU ? 1 : 32;
  const Tensor y = e.scratch(x.dtype, {planes, each, positions[0], positions[1], positions[2]});
  e.launch("polyphase", "polyphase",
           "-DTYPE=" + std::string(word_name(x.dtype)) + w.polyphase_macros() + " -DLANES=" + std::to_string(lanes))
      .in(x)
      .out(y)
      .arg(w.in[0])
      .arg(w.in[1])
      .arg(w.in[2])
      .arg(positions[0])
      .arg(positions[1])
      .arg(positions[2])
      .arg(w.begin[0])
      .arg(w.begin[1])
      .arg(w.begin[2])
      .range(positions[1] * lanes, each * positions[0], planes);
  return y;
}

}  // namespace backplane::gpu
