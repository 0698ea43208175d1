// SPDX-License-Identifier: Apache-2.0
// Claims nodes, but refuses to compile a program of more than one of them.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_status_t refuse(uint32_t nodes) {
  return nodes > 1 ? BP_UNSUPPORTED : BP_OK;
}

const Lie kLie = {.compile_nodes = refuse};

}  // namespace backplane::liar
