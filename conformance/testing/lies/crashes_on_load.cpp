// SPDX-License-Identifier: Apache-2.0
// Dies in the query.
#include <cstdlib>

#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.load = [] { std::abort(); }};

}  // namespace backplane::liar
