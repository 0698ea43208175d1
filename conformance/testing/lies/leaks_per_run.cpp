// SPDX-License-Identifier: Apache-2.0
// Leaks 64 bytes in each run.
#include <cstdlib>

#include "testing/wrapper.h"

namespace backplane::liar {

static void leak(Run&) {
  void* volatile forgotten = std::malloc(64);  // volatile, so that the compiler keeps the allocation
  static_cast<void>(forgotten);
}

const Lie kLie = {.before = leak};

}  // namespace backplane::liar
