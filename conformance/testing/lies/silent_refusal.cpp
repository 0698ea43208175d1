// SPDX-License-Identifier: Apache-2.0
// States neither a code nor a text when it refuses a host.
#include "testing/wrapper.h"

namespace backplane::liar {

static const bp_plugin_t* refuse(const bp_plugin_t* honest) {
  static bp_plugin_t mute;
  mute = taken(*honest);
  mute.refusal = BP_OK;
  mute.refusal_text = {nullptr, 0};
  return &mute;
}

const Lie kLie = {.refusal = refuse};

}  // namespace backplane::liar
