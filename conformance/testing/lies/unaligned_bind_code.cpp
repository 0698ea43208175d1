// SPDX-License-Identifier: Apache-2.0
// Refuses unaligned memory in `bind`, but not with BP_UNSUPPORTED.
// Reported: bind returns BP_INVALID_ARGUMENT, not BP_UNSUPPORTED
#include "testing/unaligned.h"
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_instance_api_t instance_api;
static bp_status_t (*honest_bind)(bp_instance_t*, const bp_binding_t*, bp_error_t*);

static bp_status_t bind(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error) {
  return is_unaligned(binding) ? BP_INVALID_ARGUMENT : honest_bind(instance, binding, error);
}

static void falsify(bp_plugin_t& plugin) {
  instance_api = taken(*plugin.instance);
  honest_bind = instance_api.bind;
  instance_api.bind = bind;
  plugin.instance = &instance_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
