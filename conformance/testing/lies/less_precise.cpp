// SPDX-License-Identifier: Apache-2.0
// Reports that it computes in fp16, even to a strict session.
#include "testing/wrapper.h"

namespace backplane::liar {

static void claim(const std::string&, bp_verdict_t& verdict) {
  verdict.compute_types = BP_COMPUTE_FP16;
}

const Lie kLie = {.verdict = claim};

}  // namespace backplane::liar
