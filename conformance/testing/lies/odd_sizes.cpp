// SPDX-License-Identifier: Apache-2.0
// Makes the last element wrong if the number of elements is odd.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(Run& run) {
  const Bound& output = run.outputs[0];
  if (output.is_float() && output.count() % 2 == 1) output.set(output.count() - 1, output.get(output.count() - 1) + 1);
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
