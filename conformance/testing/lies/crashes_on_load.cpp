// SPDX-License-Identifier: Apache-2.0
// Aborts in bp_plugin_query.
#include <cstdlib>

#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.load = [] { std::abort(); }};

}  // namespace backplane::liar
