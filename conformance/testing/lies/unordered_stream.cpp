// SPDX-License-Identifier: Apache-2.0
// Ignores the stream of a run, and so the stream's order.
#include "testing/wrapper.h"

namespace backplane::liar {

static void falsify(bp_run_t& run) {
  run.stream = nullptr;
}

const Lie kLie = {.settings = falsify};

}  // namespace backplane::liar
