// SPDX-License-Identifier: Apache-2.0
// Ends the process in Softmax, with success.
#include <unistd.h>

#include "testing/wrapper.h"

namespace backplane::liar {

static void leave(Run& run) {
  if (run.op == "Softmax") _exit(0);
}

const Lie kLie = {.before = leave};

}  // namespace backplane::liar
