// SPDX-License-Identifier: Apache-2.0
// Leaks a kilobyte with each program.
#include <cstdlib>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t leak(const std::string&) {
  void* volatile forgotten = std::malloc(1024);  // volatile, so that the compiler keeps the allocation
  static_cast<void>(forgotten);
  return BP_OK;
}

const Lie kLie = {.compile = leak};

}  // namespace backplane::liar
