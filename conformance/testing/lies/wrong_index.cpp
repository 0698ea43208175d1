// SPDX-License-Identifier: Apache-2.0
// Calls its first device the seventh.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.info = [](bp_device_info_t& info) { info.index = 6; }};

}  // namespace backplane::liar
