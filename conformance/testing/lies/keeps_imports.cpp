// SPDX-License-Identifier: Apache-2.0
// Does not report that imported memory is no longer used.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_memory_api_t memory_api;
static bp_status_t (*honest_import)(bp_device_t*, const bp_import_t*, bp_buffer_t*, bp_error_t*);

static bp_status_t import(bp_device_t* device, const bp_import_t* what, bp_buffer_t* out_buffer, bp_error_t* error) {
  bp_external_t external = taken(*what->external);
  external.release = nullptr;
  bp_import_t passed = taken(*what);
  passed.external = &external;
  return honest_import(device, &passed, out_buffer, error);
}

static void falsify(bp_plugin_t& plugin) {
  memory_api = taken(*plugin.memory);
  honest_import = memory_api.import;
  memory_api.import = import;
  plugin.memory = &memory_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
