// SPDX-License-Identifier: Apache-2.0
// Reports that it replaced a weight, but did not.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_weights_api_t weights_api;

static bp_status_t refit(bp_program_t*, const bp_refit_t*, bp_error_t*) {
  return BP_OK;
}

static void falsify(bp_plugin_t& plugin) {
  weights_api = taken(*plugin.weights);
  weights_api.refit = refit;
  plugin.weights = &weights_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
