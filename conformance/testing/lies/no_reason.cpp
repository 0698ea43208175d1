// SPDX-License-Identifier: Apache-2.0
// Refuses Softmax without a reason.
#include "testing/wrapper.h"

namespace backplane::liar {

static void refuse(const std::string& op, bp_verdict_t& verdict) {
  if (op != "Softmax") return;
  verdict.answer = BP_ANSWER_NO;
  verdict.reason = BP_REASON_NONE;
}

const Lie kLie = {.verdict = refuse};

}  // namespace backplane::liar
