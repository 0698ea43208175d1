// SPDX-License-Identifier: Apache-2.0
// Returns a wrong result in one of 50 cases.
#include "testing/every.h"

namespace backplane::liar {

static void falsify(Run& run) {
  if (is_one_of(run, 50)) mark(run);
}

const Lie kLie = {.after = falsify};

}  // namespace backplane::liar
