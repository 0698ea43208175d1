// SPDX-License-Identifier: Apache-2.0
// Accepts any blob as a stored program.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_cache_api_t cache_api;
static bp_status_t (*honest_compile)(bp_device_t*, const bp_compile_t*, bp_program_t**, bp_error_t*);

static bp_status_t validate(bp_device_t*, bp_bytes_t, uint32_t* out_answer, bp_error_t*) {
  *out_answer = BP_CACHE_EXACT;
  return BP_OK;
}

static bp_status_t deserialize(bp_device_t* device, const bp_compile_t* what, bp_bytes_t, bp_program_t** out_program,
                               bp_error_t* error) {
  return honest_compile(device, what, out_program, error);
}

static void falsify(bp_plugin_t& plugin) {
  honest_compile = plugin.program->compile;
  cache_api = taken(*plugin.cache);
  cache_api.validate = validate;
  cache_api.deserialize = deserialize;
  plugin.cache = &cache_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
