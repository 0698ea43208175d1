// SPDX-License-Identifier: Apache-2.0
// Reports index 6 for every device.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.info = [](bp_device_info_t& info) { info.index = 6; }};

}  // namespace backplane::liar
