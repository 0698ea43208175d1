// SPDX-License-Identifier: Apache-2.0
// Cases of the group weights: replacing and reading weights of a compiled program.
#include "checks/group.h"

namespace backplane::conform {
namespace {

constexpr const char* kCases[] = {"MatMul/float/odd_positive_constant", "MatMul/float/block_around_zero_constant"};

// A program with a constant operand that may be replaced.
struct Fixture {
  std::unique_ptr<Subject> subject;
  std::unique_ptr<Program> program;
  std::unique_ptr<Instance> instance;
  uint32_t weight = 0;  // index among the graph's weights
  size_t argument = 0;  // index among the problem's arguments
};

std::optional<Fixture> make_fixture(Bench& bench, Result& out_result) {
  const Device& device = bench.device();
  if (device.plugin().weights == nullptr) {
    out_result = not_supported("the device cannot replace weights: new weights need a new compilation");
    return std::nullopt;
  }
  Fixture fixture;
  for (const char* name : kCases) {
    fixture.subject = make_subject(device, problem_of(name, bench.seed(), "weights"), out_result);
    if (fixture.subject != nullptr) break;
  }
  // Falls back to Add, because simple devices claim no matrix product.
  if (fixture.subject == nullptr) {
    Problem problem = problem_of("Add/float/same", bench.seed(), "weights");
    problem.arguments[1].constant = true;
    fixture.subject = make_subject(device, std::move(problem), out_result);
  }
  if (fixture.subject == nullptr) return std::nullopt;
  const auto& arguments = fixture.subject->problem.arguments;
  while (fixture.argument < arguments.size() && !arguments[fixture.argument].constant) ++fixture.argument;
  if (fixture.argument == arguments.size()) {
    out_result = not_supported("no claimed call has a constant operand");
    return std::nullopt;
  }
  fixture.subject->graph->allow_refit();
  Answer answer;
  fixture.program = Program::compile(device, *fixture.subject->graph, answer, nullptr, BP_COMPILE_REFIT);
  if (fixture.program != nullptr) fixture.instance = Instance::create(*fixture.program, answer);
  if (fixture.instance != nullptr) answer = fixture.instance->bind_all(fixture.subject->inputs);
  if (answer.ok()) return fixture;
  out_result = failed(answer.describe());
  return std::nullopt;
}

bp_tensor_t dense(const onnx::Tensor& tensor) {
  return {.size = sizeof(bp_tensor_t),
          .dtype = tensor.dtype,
          .rank = static_cast<uint32_t>(tensor.extents.size()),
          .extents = tensor.extents.data(),
          .buffer = {.address = const_cast<std::byte*>(tensor.bytes.data()), .bytes = tensor.bytes.size()}};
}

Answer refit(const Fixture& fixture, uint32_t weight, const bp_tensor_t& tensor) {
  const bp_refit_weight_t one = {.weight = weight, .tensor = &tensor};
  const bp_refit_t what = {.size = sizeof what, .count = 1, .weights = &one, .stride = sizeof one};
  Detail detail;
  const bp_status_t status =
      fixture.program->device().plugin().weights->refit(fixture.program->raw(), &what, detail.error());
  return {status, Stage::kRefit, detail.text()};
}

std::string right(const Fixture& fixture, const Subject& subject) {
  std::vector<onnx::Tensor> outputs;
  if (const Answer answer = fixture.instance->run_checked(outputs); !answer.ok()) return answer.describe();
  return subject.fault(outputs);
}

// New weights change the results and can be read back.
Result replaced(Bench& bench) {
  Result result;
  const std::optional<Fixture> fixture = make_fixture(bench, result);
  if (!fixture) return result;
  if (const std::string fault = right(*fixture, *fixture->subject); !fault.empty())
    return failed("before a refit: " + fault);
  Subject other{fixture->subject->problem, {}, nullptr, {}, fixture->subject->flushes};
  onnx::Tensor& weight = *other.problem.arguments[fixture->argument].tensor;
  for (uint64_t round = 0; round < 3; ++round) {
    Random random(round, "refit");
    weight = random_tensor(random, weight.dtype, weight.extents, Fill::kAroundZero);
    other.references = reference(other.problem);
    if (const Answer answer = refit(*fixture, fixture->weight, dense(weight)); !answer.ok()) {
      return answer.status == BP_UNSUPPORTED ? not_supported(answer.text) : failed(answer.describe());
    }
    if (const std::string fault = right(*fixture, other); !fault.empty()) return failed("after a refit: " + fault);
    const bp_weights_api_t& api = *fixture->program->device().plugin().weights;
    if (api.read == nullptr) continue;
    onnx::Tensor back{weight.dtype, weight.extents, std::vector<std::byte>(weight.bytes.size())};
    bp_tensor_t tensor = dense(back);
    Detail detail;
    const bp_status_t status = api.read(fixture->program->raw(), fixture->weight, &tensor, detail.error());
    if (status != BP_OK) return failed(fmt::format("read returns {}: {}", status_name(status), detail.text()));
    if (back.bytes != weight.bytes) return failed("a weight that is read back differs from what was set");
  }
  return passed(1);
}

// A refit with another type, with other extents or of a weight that does not exist is refused and changes nothing.
Result refused(Bench& bench) {
  Result result;
  const std::optional<Fixture> fixture = make_fixture(bench, result);
  if (!fixture) return result;
  const onnx::Tensor& good = *fixture->subject->problem.arguments[fixture->argument].tensor;
  const struct {
    const char* what;
    bp_status_t status;
    uint32_t weight;
    onnx::Tensor tensor;
  } rows[] = {
      {"another type",
       BP_TYPE_MISMATCH,
       fixture->weight,
       {BP_DTYPE_INT32, good.extents, std::vector<std::byte>(good.bytes.size())}},
      {"other extents", BP_TYPE_MISMATCH, fixture->weight, {good.dtype, {1}, std::vector<std::byte>(sizeof(float))}},
      {"a weight that does not exist", BP_NOT_FOUND, 1000, good}};
  for (const auto& row : rows) {
    const Answer answer = refit(*fixture, row.weight, dense(row.tensor));
    if (answer.status == BP_UNSUPPORTED) return not_supported(answer.text);
    if (answer.status != row.status)
      return failed(fmt::format("a refit with {} returns {}, not {}", row.what, status_name(answer.status),
                                status_name(row.status)));
  }
  const std::string fault = right(*fixture, *fixture->subject);
  return fault.empty() ? passed(1) : failed("after refits that were refused: " + fault);
}

}  // namespace

void add_weights(const Selection&, std::vector<Case>& out_cases) {
  out_cases.push_back({"weights/replaced", replaced});
  out_cases.push_back({"weights/refused", refused});
}

}  // namespace backplane::conform
