// SPDX-License-Identifier: Apache-2.0
// Does not report failures of runs in a stream.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_sync_api_t sync_api;
static bp_status_t (*honest_wait)(bp_stream_t*, uint64_t, bp_error_t*);

static bp_status_t stream_wait(bp_stream_t* stream, uint64_t deadline, bp_error_t* error) {
  const bp_status_t status = honest_wait(stream, deadline, error);
  return status == BP_TIMED_OUT ? status : BP_OK;
}

static void falsify(bp_plugin_t& plugin) {
  sync_api = taken(*plugin.sync);
  honest_wait = sync_api.stream_wait;
  sync_api.stream_wait = stream_wait;
  plugin.sync = &sync_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
