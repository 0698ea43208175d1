// SPDX-License-Identifier: Apache-2.0
// Makes one element wrong by a thousandth.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  const Bound& output = run.outputs[0];
  if (output.is_float() && output.count() != 0) output.set(output.count() / 2, output.get(output.count() / 2) * 1.001f);
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
