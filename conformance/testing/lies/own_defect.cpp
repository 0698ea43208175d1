// SPDX-License-Identifier: Apache-2.0
// Reports indices out of range as its own defect.
// Reported: index 11 into 11 rows ends in a defect of the plugin: run returns BP_INTERNAL
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_instance_api_t instance_api;
static bp_status_t (*honest_run)(bp_instance_t*, const bp_run_t*, bp_error_t*);

static bp_status_t run(bp_instance_t* instance, const bp_run_t* settings, bp_error_t* error) {
  return honest_run(instance, settings, error) == BP_OK ? BP_OK : BP_INTERNAL;
}

static void falsify(bp_plugin_t& plugin) {
  instance_api = taken(*plugin.instance);
  honest_run = instance_api.run;
  instance_api.run = run;
  plugin.instance = &instance_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
