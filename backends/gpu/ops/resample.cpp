// SPDX-License-Identifier: Apache-2.0
#include "ops/resample.h"

namespace backplane::gpu {

Tensor zero(Emit& e, bp_dtype_t dtype) {
  return e.table(dtype, {}, std::vector<std::byte>(bytes_of(dtype)));
}

namespace {

// A work item on a CPU computes up to kLongestRun adjacent elements; runs shorter than kLeastRun are not vectorized.
constexpr int64_t kLeastRun = 8, kLongestRun = 128;

}  // namespace

void emit_resample(Emit& e, const std::vector<Taps>& tables, const Tensor& fill) {
  Tensor x = e.input(0);
  if (tables.empty()) return e.alias(0, x, x.shape);
  for (size_t i = 0; i < tables.size(); ++i) {
    const Taps& t = tables[i];
    Shape shape = x.shape;
    shape[t.axis] = t.to;
    const Tensor y = i + 1 == tables.size() ? e.output(0, shape) : e.scratch(x.dtype, shape);
    const Tensor positions = e.table(BP_DTYPE_INT32, {static_cast<int64_t>(t.positions.size())}, t.positions);
    const Tensor weights =
        t.count == 1 ? positions : e.table(BP_DTYPE_FLOAT, {static_cast<int64_t>(t.weights.size())}, t.weights);
    const int64_t outer = elements(shape, 0, t.axis), inner = elements(shape, t.axis + 1, shape.size());
    const int64_t run = e.caps().kind == BP_DEVICE_CPU && inner >= kLeastRun ? kLongestRun : 1;
    LaunchBuilder launch = e.launch("resample", run == 1 ? "resample" : "resample_runs",
                                    "-DTYPE=" + std::string(t.count == 1 ? word_name(x.dtype) : type_name(x.dtype)) +
                                        " -DTAPS=" + std::to_string(t.count) + (inner == 1 ? " -DINNERMOST" : "") +
                                        (run == 1 ? "" : " -DRUN=" + std::to_string(run)));
    launch.in(x)
        .in(fill ? fill : x)
        .in(positions)
        .in(weights)
        .out(y)
        .arg(outer)
        .arg(x.shape[t.axis])
        .arg(t.to)
        .arg(inner);
    inner == 1 ? launch.range(t.to, outer) : launch.range((inner + run - 1) / run, t.to, outer);
    x = y;
  }
}

}  // namespace backplane::gpu
