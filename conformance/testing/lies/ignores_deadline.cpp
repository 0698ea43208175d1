// SPDX-License-Identifier: Apache-2.0
// Ignores the deadline.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.settings = [](bp_run_t& run) { run.deadline = 0; }};

}  // namespace backplane::liar
