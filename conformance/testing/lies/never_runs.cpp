// SPDX-License-Identifier: Apache-2.0
// Says that it ran.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.skip = true};

}  // namespace backplane::liar
