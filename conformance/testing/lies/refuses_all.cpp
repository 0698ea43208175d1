// SPDX-License-Identifier: Apache-2.0
// Claims nothing.
#include "testing/wrapper.h"

namespace backplane::liar {

static void refuse(const std::string&, bp_verdict_t& verdict) {
  static constexpr char kWhy[] = "nothing is supported";
  verdict.answer = BP_ANSWER_NO;
  verdict.reason = BP_REASON_OPERATOR;
  verdict.detail = {kWhy, sizeof kWhy - 1};
}

const Lie kLie = {.verdict = refuse};

}  // namespace backplane::liar
