// SPDX-License-Identifier: Apache-2.0
// Claims Softmax, but does not compile it.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t refuse(const std::string& op) {
  return op == "Softmax" ? BP_UNSUPPORTED : BP_OK;
}

const Lie kLie = {.compile = refuse};

}  // namespace backplane::liar
