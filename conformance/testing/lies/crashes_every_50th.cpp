// SPDX-License-Identifier: Apache-2.0
// Crashes in one of 50 cases.
#include <csignal>

#include "testing/every.h"

namespace backplane::liar {

static void crash(Run& run) {
  if (is_one_of(run, 50)) std::raise(SIGSEGV);
}

const Lie kLie = {.before = crash};

}  // namespace backplane::liar
