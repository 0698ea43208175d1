// SPDX-License-Identifier: Apache-2.0
// Tells a strict session that it computes in 16 bits.
#include "testing/wrapper.h"

namespace backplane::liar {

static void claim(const std::string&, bp_verdict_t& verdict) {
  verdict.precision = BP_DTYPE_FLOAT16;
}

const Lie kLie = {.verdict = claim};

}  // namespace backplane::liar
