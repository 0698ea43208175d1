// SPDX-License-Identifier: Apache-2.0
// Splits an island into parts, the last of which is empty.
// Reported: the island is split into parts, one of which is empty
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_coverage_api_t coverage_api;
static bp_status_t (*honest_review)(bp_device_t*, const bp_compile_t*, bp_review_t*, bp_error_t*);

static bp_status_t review(bp_device_t* device, const bp_compile_t* what, bp_review_t* out_review, bp_error_t* error) {
  const bp_status_t status = honest_review(device, what, out_review, error);
  if (status == BP_OK && out_review->answer == BP_REVIEW_SPLIT) out_review->split(out_review->split_self, nullptr, 0);
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
