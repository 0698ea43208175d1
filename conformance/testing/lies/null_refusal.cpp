// SPDX-License-Identifier: Apache-2.0
// Returns NULL to a host that it refuses.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.refusal = [](const bp_plugin_t*) -> const bp_plugin_t* { return nullptr; }};

}  // namespace backplane::liar
