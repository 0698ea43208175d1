// SPDX-License-Identifier: Apache-2.0
// Reports a descriptor that is shorter than ABI 1.0's.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.descriptor = [](bp_plugin_t& plugin) { plugin.size = 64; }};

}  // namespace backplane::liar
