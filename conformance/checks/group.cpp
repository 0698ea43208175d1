// SPDX-License-Identifier: Apache-2.0
#include "checks/group.h"

#include <stdexcept>

namespace backplane::conform {

const Library& Bench::library() {
  if (library_ == nullptr) library_ = std::make_unique<Library>(plugin_);
  return *library_;
}

const Device& Bench::device() {
  if (backend_ == nullptr) backend_ = std::make_unique<Backend>(library(), host_);
  if (device_ == nullptr) device_ = std::make_unique<Device>(*backend_, device_index_);
  return *device_;
}

std::vector<Case> all_cases(const Selection& selection) {
  constexpr AddCases kGroups[] = {add_abi,       add_coverage,    add_programs,    add_containers, add_ops,
                                  add_graph,     add_models,      add_handwritten, add_negative,   add_robustness,
                                  add_memory,    add_sync,        add_cache,       add_weights,    add_concurrency,
                                  add_lifecycle, add_determinism, add_performance};
  std::vector<Case> cases;
  for (const AddCases add : kGroups) add(selection, cases);
  return cases;
}

Result passed(uint32_t nodes) {
  return {.state = State::kPass, .nodes = nodes};
}
Result failed(std::string reason) {
  return {.state = State::kFail, .reason = std::move(reason)};
}
Result not_supported(std::string reason) {
  return {.state = State::kNotSupported, .reason = std::move(reason)};
}

std::unique_ptr<Subject> make_subject(const Device& device, Problem problem, Result& out_result) {
  References references = reference(problem);
  const std::optional<GraphSpec> spec = graph_of(problem, references, device.newest_opset());
  if (!spec) {
    out_result = not_supported(fmt::format("the plugin supports at most operator set {}", device.newest_opset()));
    return nullptr;
  }
  auto graph = std::make_unique<Graph>(*spec);
  std::vector<Claim> claims;
  const Answer answer = device.coverage(*graph, claims);
  if (!answer.ok()) {
    out_result = failed(answer.describe());
    return nullptr;
  }
  if (claims[0].answer == BP_ANSWER_NO) {
    out_result = not_supported(fmt::format("reason {}: {}", claims[0].reason, claims[0].detail));
    return nullptr;
  }
  std::vector<onnx::Tensor> inputs = run_inputs(problem);
  return std::make_unique<Subject>(
      Subject{std::move(problem), std::move(references), std::move(graph), std::move(inputs), device.flushes()});
}

Problem problem_of(std::string_view op_case, uint64_t seed, std::string_view stream) {
  for (const OpCase& one : op_cases()) {
    if (one.name != op_case) continue;
    Random random(seed, stream);
    return one.make(random);
  }
  throw std::invalid_argument("there is no operator case '" + std::string(op_case) + "'");
}

std::unique_ptr<Subject> any_subject(Bench& bench, Result& out_result) {
  for (const char* name :
       {"Add/float/same", "Relu/float/block", "MatMul/float/small_positive", "Identity/float/block"}) {
    if (auto subject = make_subject(bench.device(), problem_of(name, bench.seed(), name), out_result)) return subject;
  }
  return nullptr;
}

}  // namespace backplane::conform
