// SPDX-License-Identifier: Apache-2.0
// Reports a group with a node that the graph does not have.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_coverage_api_t coverage_api;
static bp_status_t (*honest_query)(bp_device_t*, const bp_coverage_query_t*, const bp_coverage_sink_t*, bp_error_t*);

static bp_status_t query(bp_device_t* device, const bp_coverage_query_t* what, const bp_coverage_sink_t* sink,
                         bp_error_t* error) {
  const bp_status_t status = honest_query(device, what, sink, error);
  if (status != BP_OK) return status;
  const uint32_t beyond = what->graph->node_count;
  bp_group_t group{};
  group.nodes = &beyond;
  group.node_count = 1;
  sink->groups(sink->self, &group, 1, sizeof group);
  return status;
}

static void falsify(bp_plugin_t& plugin) {
  coverage_api = taken(*plugin.coverage);
  honest_query = coverage_api.query;
  coverage_api.query = query;
  plugin.coverage = &coverage_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
