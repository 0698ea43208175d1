// SPDX-License-Identifier: Apache-2.0
// Refuses a host with NULL.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.refusal = [](const bp_plugin_t*) -> const bp_plugin_t* { return nullptr; }};

}  // namespace backplane::liar
