// SPDX-License-Identifier: Apache-2.0
// Refuses Softmax, but compiles it.
#include "testing/wrapper.h"

namespace backplane::liar {

static void refuse(const std::string& op, bp_verdict_t& verdict) {
  if (op != "Softmax") return;
  verdict.answer = BP_ANSWER_NO;
  verdict.reason = BP_REASON_OPERATOR;
  verdict.detail = {"no", 2};
}

const Lie kLie = {.verdict = refuse};

}  // namespace backplane::liar
