// SPDX-License-Identifier: Apache-2.0
// Exits with status 0 when it runs Softmax.
#include <unistd.h>

#include "testing/wrapper.h"

namespace backplane::liar {

static void leave(Run& run) {
  if (run.op == "Softmax") _exit(0);
}

const Lie kLie = {.before = leave};

}  // namespace backplane::liar
