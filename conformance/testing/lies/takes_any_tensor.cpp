// SPDX-License-Identifier: Apache-2.0
// Reports that it bound a tensor, and did not.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.bind_refused = [] { return true; }};

}  // namespace backplane::liar
