// SPDX-License-Identifier: Apache-2.0
// Says that it bound what it did not.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.bind_refused = [] { return true; }};

}  // namespace backplane::liar
