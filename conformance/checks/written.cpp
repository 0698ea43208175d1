// SPDX-License-Identifier: Apache-2.0
// Graphs written down by hand: control flow, and extents that are known at run time only. One program and one instance
// serve all runs of a case, which are judged one by one.
#include "cases/draft.h"
#include "checks/group.h"

namespace backplane::conform {
namespace {

constexpr uint32_t kOldestOpset = 18;

Result run_written(Bench& bench, const NetworkCase& one, const std::string& name) {
  const Device& device = bench.device();
  if (device.newest_opset() < kOldestOpset) {
    return not_supported(fmt::format("the plugin knows operator set {} at most", device.newest_opset()));
  }
  Random random(bench.seed(), name);
  const NetworkCase::Runs runs = one.make(random, device.newest_opset());
  const Graph graph(runs.spec);
  std::vector<Claim> claims;
  Answer answer = device.coverage(graph, claims);
  if (!answer.ok()) return failed(answer.describe());
  for (size_t n = 0; n < claims.size(); ++n) {
    if (claims[n].answer != BP_ANSWER_NO) continue;
    return not_supported(
        fmt::format("{}: reason {}: {}", runs.spec.nodes[n].op_type, claims[n].reason, claims[n].detail));
  }
  const auto program = Program::compile(device, graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  if (instance == nullptr) return failed("every node is claimed and " + answer.describe());

  Result result = passed(static_cast<uint32_t>(runs.spec.nodes.size()));
  for (size_t run = 0; run < runs.inputs.size(); ++run) {
    const std::vector<Estimate> estimates = estimate(runs.spec, runs.inputs[run], device.flushes());
    std::vector<Extents> extents;
    for (const uint32_t output : runs.spec.outputs) extents.push_back(estimates[output].value.extents);
    std::vector<onnx::Tensor> outputs;
    answer = instance->bind_all(runs.inputs[run], extents);
    if (answer.ok()) answer = instance->run_checked(outputs);
    if (!answer.ok()) return failed(fmt::format("run {}: {}", run, answer.describe()));
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Judgement judgement =
          judge(estimates[runs.spec.outputs[o]].reference(), outputs[o], {.flushes = device.flushes()});
      for (size_t i = 0; i < judgement.errors.size(); ++i) result.errors[i] += judgement.errors[i];
      result.worst = std::max(result.worst, judgement.worst);
      if (judgement.answer == Judgement::kRight) continue;
      result.state = judgement.answer == Judgement::kWrong ? State::kFail : State::kMistrusted;
      result.reason = fmt::format("run {}, output {}: {}", run, o, judgement.reason);
      return result;
    }
  }
  if (const std::string misuse = bench.host().misuse(); !misuse.empty()) return failed("the plugin " + misuse);
  return result;
}

void add_cases(std::string_view group, std::span<const NetworkCase> all, uint32_t draws, std::vector<Case>& out) {
  for (const NetworkCase& one : all) {
    for (uint32_t draw = 0; draw < draws; ++draw) {
      const std::string name = fmt::format("{}/{}/{}", group, one.name, draw);
      out.push_back(
          {name, [&one, name](Bench& bench) { return run_written(bench, one, name); }, std::string(one.profile)});
    }
  }
}

}  // namespace

void add_written(const Selection& selection, std::vector<Case>& out_cases) {
  const uint32_t draws = selection.full ? 50 : 3;
  add_cases("graph/control-flow", control_networks(), draws, out_cases);
  add_cases("graph/dynamic", dynamic_networks(), draws, out_cases);
}

}  // namespace backplane::conform
