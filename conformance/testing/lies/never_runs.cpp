// SPDX-License-Identifier: Apache-2.0
// Reports success without running anything.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.skip = true};

}  // namespace backplane::liar
