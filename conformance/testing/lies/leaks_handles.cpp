// SPDX-License-Identifier: Apache-2.0
// Leaves a file open with each program.
#include <unistd.h>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t leak(const std::string&) {
  if (dup(0) < 0) return BP_RESOURCE_EXHAUSTED;
  return BP_OK;
}

const Lie kLie = {.compile = leak};

}  // namespace backplane::liar
