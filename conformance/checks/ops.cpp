// SPDX-License-Identifier: Apache-2.0
// Every operator that the backend claims, against the oracle.
#include <algorithm>

#include "checks/group.h"

namespace backplane::conform {
namespace {

Result run_op(Bench& bench, const OpCase& one, const std::string& name) {
  Random random(bench.seed(), name);
  Result result;
  const std::unique_ptr<Subject> subject = make_subject(bench.device(), one.make(random), result);
  if (subject == nullptr) return result;
  std::vector<onnx::Tensor> outputs;
  const Answer answer = compute(bench.device(), *subject->graph, subject->inputs, outputs);
  if (!answer.ok()) return failed(answer.describe());
  if (const std::string misuse = bench.host().misuse(); !misuse.empty()) return failed("the plugin " + misuse);
  const Judgement judgement = subject->judge(outputs);
  // Where every output is empty there is nothing to compute: such a pass says nothing of a device that passes no other.
  const bool has_elements =
      std::any_of(outputs.begin(), outputs.end(), [](const onnx::Tensor& output) { return output.count() != 0; });
  constexpr State kStates[] = {State::kPass, State::kFail, State::kMistrusted};
  return {.state = kStates[judgement.answer],
          .reason = judgement.reason,
          .nodes = has_elements ? 1u : 0u,
          .worst = judgement.worst,
          .close = judgement.answer == Judgement::kWrong && judgement.close,
          .opset = subject->graph->spec().nodes[0].since_version,
          .errors = judgement.errors};
}

}  // namespace

void add_ops(const Selection& selection, std::vector<Case>& out_cases) {
  const int draws = selection.full ? 10 : 1;  // of the inputs of each case
  for (const OpCase& one : op_cases()) {
    for (int draw = 0; draw < (one.once ? 1 : draws); ++draw) {
      const std::string name = fmt::format("ops/{}/{}", one.name, draw);
      out_cases.push_back(
          {name, [&one, name](Bench& bench) { return run_op(bench, one, name); }, std::string(one.profile)});
    }
  }
}

}  // namespace backplane::conform
