// SPDX-License-Identifier: Apache-2.0
// Accepts buffers that are up to 64 bytes too small.
#include "testing/wrapper.h"

namespace backplane::liar {

const Lie kLie = {.bind = [](bp_tensor_t& tensor) { tensor.buffer.bytes += 64; }};

}  // namespace backplane::liar
