// SPDX-License-Identifier: Apache-2.0
// Reports that it ran, but did not.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.skip = true};

}  // namespace backplane::liar
