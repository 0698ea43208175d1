// SPDX-License-Identifier: Apache-2.0
// Copies one byte too few of more than 4096 bytes.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_memory_api_t memory_api;
static bp_status_t (*honest_copy)(bp_device_t*, const bp_copy_t*, bp_error_t*);

static bp_status_t copy(bp_device_t* device, const bp_copy_t* what, bp_error_t* error) {
  bp_copy_t less = taken(*what);
  if (less.bytes > 4096) --less.bytes;
  return honest_copy(device, &less, error);
}

static void falsify(bp_plugin_t& plugin) {
  memory_api = taken(*plugin.memory);
  honest_copy = memory_api.copy;
  memory_api.copy = copy;
  plugin.memory = &memory_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
