// SPDX-License-Identifier: Apache-2.0
// Splits an island into one part, in descending order, that is too large for the device.
// Reported: a part of 500 nodes: review returns BP_UNSUPPORTED
#include <numeric>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_coverage_api_t coverage_api;
static bp_status_t (*honest_review)(bp_device_t*, const bp_compile_t*, bp_review_t*, bp_error_t*);

static bp_status_t review(bp_device_t* device, const bp_compile_t* what, bp_review_t* out_review, bp_error_t* error) {
  const auto split = out_review->split;
  out_review->split = [](void*, const uint32_t*, uint32_t) {};
  const bp_status_t status = honest_review(device, what, out_review, error);
  out_review->split = split;
  if (status != BP_OK || out_review->answer != BP_REVIEW_SPLIT) return status;
  std::vector<uint32_t> nodes(what->graph->node_count);
  std::iota(nodes.rbegin(), nodes.rend(), 0u);
  split(out_review->split_self, nodes.data(), what->graph->node_count);
  return status;
}

static void falsify(bp_plugin_t& plugin) {
  coverage_api = taken(*plugin.coverage);
  honest_review = coverage_api.review;
  coverage_api.review = review;
  plugin.coverage = &coverage_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
