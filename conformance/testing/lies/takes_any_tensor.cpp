// SPDX-License-Identifier: Apache-2.0
// Reports that it bound a tensor that it refused.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.bind_refused = [] { return true; }};

}  // namespace backplane::liar
