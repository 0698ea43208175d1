// SPDX-License-Identifier: Apache-2.0
// Cases of the group ops: every operator that the device claims, judged against the oracle.
#include <algorithm>

#include "checks/remote.h"

namespace backplane::conform {
namespace {

Result judge_op(RemoteDevice& device, const OpCase& one, const std::string& name) {
  Random random(device.seed(), name);
  Result result;
  const std::optional<Question> question = make_question(device, one.make(random), result);
  if (!question) return result;
  std::vector<onnx::Tensor> outputs;
  const Answer answer = device.compute(question->spec, question->inputs, outputs);
  if (!answer.ok()) return failed(answer.describe());
  if (!device.misuse().empty()) return failed("the plugin " + device.misuse());
  const Judgement judgement = judge_all(question->problem, question->references, outputs, device.flushes());
  // If every output is empty, nothing was computed. Such a pass counts no nodes, so it proves nothing for a device that
  // passes no other case.
  const bool has_elements =
      std::any_of(outputs.begin(), outputs.end(), [](const onnx::Tensor& output) { return output.count() != 0; });
  constexpr State kStates[] = {State::kPass, State::kFail, State::kMistrusted};
  return {.state = kStates[judgement.answer],
          .reason = judgement.reason,
          .nodes = has_elements ? 1u : 0u,
          .worst = judgement.worst,
          .close = judgement.answer == Judgement::kWrong && judgement.close,
          .opset = question->spec.nodes[0].since_version,
          .errors = judgement.errors};
}

}  // namespace

void add_ops(const Selection& selection, std::vector<Case>& out_cases) {
  const int draws = selection.full ? 10 : 1;  // random draws of each case's inputs
  for (const OpCase& one : op_cases()) {
    for (int draw = 0; draw < (one.once ? 1 : draws); ++draw) {
      const std::string name = fmt::format("ops/{}/{}", one.name, draw);
      out_cases.push_back({.name = name,
                           .judge = [&one, name](RemoteDevice& device) { return judge_op(device, one, name); },
                           .profile = std::string(one.profile)});
    }
  }
}

}  // namespace backplane::conform
