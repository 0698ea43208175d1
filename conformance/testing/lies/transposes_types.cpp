// SPDX-License-Identifier: Apache-2.0
// Infers the extents of its own operators in reverse order.
#include <iterator>

#include "testing/wrapper.h"

namespace backplane::liar {

static bp_coverage_api_t coverage_api;
static bp_status_t (*honest_infer)(bp_device_t*, const bp_infer_t*, const bp_infer_sink_t*, bp_error_t*);

static bp_status_t infer(bp_device_t* device, const bp_infer_t* what, const bp_infer_sink_t* sink, bp_error_t* error) {
  bp_infer_sink_t passed = taken(*sink);
  passed.self = const_cast<bp_infer_sink_t*>(sink);
  passed.output = [](void* self, uint32_t slot, bp_dtype_t dtype, int32_t rank, const bp_dim_t* dims) {
    const auto* const to = static_cast<const bp_infer_sink_t*>(self);
    const std::vector<bp_dim_t> reversed(std::make_reverse_iterator(dims + rank), std::make_reverse_iterator(dims));
    to->output(to->self, slot, dtype, rank, reversed.data());
  };
  return honest_infer(device, what, &passed, error);
}

static void falsify(bp_plugin_t& plugin) {
  coverage_api = taken(*plugin.coverage);
  honest_infer = coverage_api.infer;
  coverage_api.infer = infer;
  plugin.coverage = &coverage_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
