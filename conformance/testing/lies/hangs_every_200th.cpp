// SPDX-License-Identifier: Apache-2.0
// Does not return in one of 200 cases.
#include <unistd.h>

#include "testing/every.h"

namespace backplane::liar {

static void hang(Run& run) {
  while (is_one_of(run, 200)) pause();
}

const Lie kLie = {.before = hang};

}  // namespace backplane::liar
