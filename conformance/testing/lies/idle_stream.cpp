// SPDX-License-Identifier: Apache-2.0
// Reports that a stream is idle without checking.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_sync_api_t sync_api;

static bp_status_t stream_wait(bp_stream_t*, uint64_t, bp_error_t*) {
  return BP_OK;
}

static void falsify(bp_plugin_t& plugin) {
  sync_api = taken(*plugin.sync);
  sync_api.stream_wait = stream_wait;
  plugin.sync = &sync_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
