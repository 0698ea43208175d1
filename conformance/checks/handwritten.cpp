// SPDX-License-Identifier: Apache-2.0
// Cases with graphs written by hand: control flow, and extents that are known only at run time. One program and one
// instance serve all runs of a case, and every run is judged.
#include "cases/graph_spec_builder.h"
#include "cases/network_case.h"
#include "checks/remote.h"
#include "judge/judge.h"

namespace backplane::conform {
namespace {

constexpr uint32_t kOldestOpset = 18;

Result judge_handwritten(RemoteDevice& device, const NetworkCase& one, const std::string& name) {
  if (device.newest_opset() < kOldestOpset) {
    return not_supported(fmt::format("the plugin supports at most operator set {}", device.newest_opset()));
  }
  Random random(device.seed(), name);
  const NetworkCase::Runs runs = one.make(random, device.newest_opset());
  std::vector<Claim> claims;
  Answer answer = device.coverage(runs.spec, claims);
  if (!answer.ok()) return failed(answer.describe());
  for (size_t n = 0; n < claims.size(); ++n) {
    if (claims[n].answer != BP_ANSWER_NO) continue;
    return not_supported(
        fmt::format("{}: reason {}: {}", runs.spec.nodes[n].op_type, claims[n].reason, claims[n].detail));
  }
  std::vector<std::vector<Estimate>> expected;
  std::vector<RemoteRun> asked;
  for (const std::vector<onnx::Tensor>& inputs : runs.inputs) {
    const std::vector<Estimate>& estimates = expected.emplace_back(estimate(runs.spec, inputs, device.flushes()));
    RemoteRun& run = asked.emplace_back(RemoteRun{inputs});
    for (const uint32_t output : runs.spec.outputs) run.extents.push_back(estimates[output].value.extents);
  }
  std::vector<std::vector<onnx::Tensor>> seen;
  answer = device.run(runs.spec, asked, seen);

  Result result = passed(static_cast<uint32_t>(runs.spec.nodes.size()));
  for (size_t run = 0; run < seen.size(); ++run) {
    const std::vector<onnx::Tensor>& outputs = seen[run];
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Judgement judgement =
          judge(expected[run][runs.spec.outputs[o]].reference(), outputs[o], {.flushes = device.flushes()});
      for (size_t i = 0; i < judgement.errors.size(); ++i) result.errors[i] += judgement.errors[i];
      result.worst = std::max(result.worst, judgement.worst);
      if (judgement.answer == Judgement::kRight) continue;
      result.state = judgement.answer == Judgement::kWrong ? State::kFail : State::kMistrusted;
      result.reason = fmt::format("run {}, output {}: {}", run, o, judgement.reason);
      return result;
    }
  }
  if (!answer.ok()) {
    return failed(seen.empty() ? "every node is claimed and " + answer.describe()
                               : fmt::format("run {}: {}", seen.size(), answer.describe()));
  }
  if (!device.misuse().empty()) return failed("the plugin " + device.misuse());
  return result;
}

void add_cases(std::string_view group, std::span<const NetworkCase> all, uint32_t draws, std::vector<Case>& out) {
  for (const NetworkCase& one : all) {
    for (uint32_t draw = 0; draw < draws; ++draw) {
      const std::string name = fmt::format("{}/{}/{}", group, one.name, draw);
      out.push_back({.name = name,
                     .judge = [&one, name](RemoteDevice& device) { return judge_handwritten(device, one, name); },
                     .profile = std::string(one.profile)});
    }
  }
}

}  // namespace

void add_handwritten(const Selection& selection, std::vector<Case>& out_cases) {
  const uint32_t draws = selection.full ? 50 : 3;
  add_cases("graph/control-flow", control_networks(), draws, out_cases);
  add_cases("graph/dynamic", dynamic_networks(), draws, out_cases);
}

}  // namespace backplane::conform
