// SPDX-License-Identifier: Apache-2.0
// Claims Add only every second time that it is queried.
#include "testing/wrapper.h"

namespace backplane::liar {

static void claim(const std::string& op, bp_verdict_t& verdict) {
  static int asked = 0;
  if (op != "Add" || ++asked % 2 == 0) return;
  verdict.answer = BP_ANSWER_NO;
  verdict.reason = BP_REASON_OTHER;
}

const Lie kLie = {.verdict = claim};

}  // namespace backplane::liar
