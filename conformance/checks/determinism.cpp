// SPDX-License-Identifier: Apache-2.0
// A device that promises determinism must return the same bits on every repetition.
#include "checks/remote.h"

namespace backplane::conform {
namespace {

Result repeat(RemoteDevice& device, const char* op_case) {
  if (!device.is_deterministic()) return not_supported("the device does not promise determinism");
  Result result;
  const auto question = make_question(device, problem_of(op_case, device.seed(), "determinism"), result);
  if (!question) return result;
  std::vector<onnx::Tensor> first, again;
  for (int i = 0; i < 5; ++i) {  // compiles each time, so that the addresses of memory may differ
    std::vector<onnx::Tensor>& outputs = i == 0 ? first : again;
    if (const Answer answer = device.compute(question->spec, question->inputs, outputs); !answer.ok()) {
      return failed(answer.describe());
    }
    for (size_t o = 0; i > 0 && o < first.size(); ++o) {
      if (first[o].bytes != again[o].bytes)
        return failed(fmt::format("output {} of run {} differs from that of run 1", o, i + 1));
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
    out_cases.push_back({.name = fmt::format("determinism/{}", op_case),
                         .judge = [op_case](RemoteDevice& device) { return repeat(device, op_case); }});
  }
}

}  // namespace backplane::conform
