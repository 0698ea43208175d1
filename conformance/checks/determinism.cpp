// SPDX-License-Identifier: Apache-2.0
// The same bits on repeat, where the device promises it.
#include "checks/group.h"

namespace backplane::conform {
namespace {

Result repeat(Bench& bench, const char* op_case) {
  const Device& device = bench.device();
  if ((device.info().flags & BP_DEVICE_DETERMINISTIC) == 0) return not_supported("the device does not promise it");
  Result result;
  const auto subject = make_subject(device, problem_of(op_case, bench.seed(), "determinism"), result);
  if (subject == nullptr) return result;
  std::vector<onnx::Tensor> first, again;
  for (int i = 0; i < 5; ++i) {  // each time compiled anew: memory lies elsewhere
    std::vector<onnx::Tensor>& outputs = i == 0 ? first : again;
    if (const Answer answer = compute(device, *subject->graph, subject->inputs, outputs); !answer.ok()) {
      return failed(answer.describe());
    }
    for (size_t o = 0; i > 0 && o < first.size(); ++o) {
      if (first[o].bytes != again[o].bytes) return failed(fmt::format("run {} gives other bits", i + 1));
    }
  }
  return passed(1);
}

}  // namespace

void add_determinism(const Selection&, std::vector<Case>& out_cases) {
  for (const char* op_case :
       {"Add/float/same_long", "MatMul/float/long_around_zero", "MatMul/float/block_around_zero",
        "Conv/float/wide_around_zero", "ReduceSum/float/long", "Softmax/float/long", "LayerNormalization/float/bert",
        "GlobalAveragePool/float/rank4_33", "Gemm/float/bias_row_k512_positive"}) {
    out_cases.push_back(
        {fmt::format("determinism/{}", op_case), [op_case](Bench& bench) { return repeat(bench, op_case); }});
  }
}

}  // namespace backplane::conform
