// SPDX-License-Identifier: Apache-2.0
// Cases of the group robustness: mistakes of the host, lack of memory, and runs that are cancelled or miss their
// deadline.
#include "checks/group.h"

namespace backplane::conform {
namespace {

// A program of a claimed call, with an instance that has no bindings yet.
struct Fixture {
  std::unique_ptr<Subject> subject;
  std::unique_ptr<Program> program;
  std::unique_ptr<Instance> instance;
};

// nullopt, with the reason in `out_result`, if no ordinary call is claimed, or if it does not compile.
std::optional<Fixture> make_fixture(Bench& bench, Result& out_result) {
  Fixture result{any_subject(bench, out_result), nullptr, nullptr};
  if (result.subject == nullptr) return std::nullopt;
  Answer answer;
  result.program = Program::compile(bench.device(), *result.subject->graph, answer);
  if (result.program != nullptr) result.instance = Instance::create(*result.program, answer);
  if (result.instance != nullptr) return result;
  out_result = failed(answer.describe());
  return std::nullopt;
}

// Executes a valid run, whose outputs must be correct even after an error. Returns the fault, or an empty string.
std::string still_works(Fixture& s) {
  if (const Answer answer = s.instance->bind_all(s.subject->inputs); !answer.ok()) return answer.describe();
  std::vector<onnx::Tensor> outputs;
  if (const Answer answer = s.instance->run_checked(outputs); !answer.ok()) return answer.describe();
  return s.subject->fault(outputs);
}

Result with_fixture(Bench& bench, std::string (*check)(Bench&, Fixture&)) {
  Result result;
  std::optional<Fixture> s = make_fixture(bench, result);
  if (!s) return result;
  if (const std::string fault = check(bench, *s); !fault.empty()) return failed(fault);
  if (const std::string fault = still_works(*s); !fault.empty())
    return failed("a valid run afterwards fails: " + fault);
  return passed(1);
}

// The plugin's own text about its failure, as the end of a sentence; empty if there is none.
std::string explained(const Answer& answer) {
  return answer.text.empty() ? "" : ": " + answer.text;
}

std::string unbound(Bench&, Fixture& s) {
  std::string fault;
  RunSettings settings;
  settings.out_done_fault = &fault;
  const Answer answer = s.instance->run(settings);
  if (answer.status != BP_BAD_STATE)
    return fmt::format("a run without bindings returns {}, not BP_BAD_STATE{}", status_name(answer.status),
                       explained(answer));
  return fault;
}

std::string small_buffers(Bench& bench, Fixture& s) {
  for (const bool is_output : {false, true}) {
    const GraphSpec& spec = s.program->graph().spec();
    const ValueSpec& value = spec.values[is_output ? spec.outputs[0] : spec.inputs[0]];
    const Memory memory(bench.device(), value.dtype, value.extents);
    bp_tensor_t tensor = memory.tensor();
    tensor.buffer.bytes -= 1;
    const Answer answer = s.instance->bind(is_output ? BP_SLOT_OUTPUT : 0, tensor);
    if (answer.status != BP_BUFFER_TOO_SMALL) {
      return fmt::format("binding an {} that is one byte too small returns {}, not BP_BUFFER_TOO_SMALL{}",
                         is_output ? "output" : "input", status_name(answer.status), explained(answer));
    }
  }
  return "";
}

std::string wrong_tensors(Bench& bench, Fixture& s) {
  const GraphSpec& spec = s.program->graph().spec();
  const ValueSpec& value = spec.values[spec.inputs[0]];
  const Extents longer = {1 + value.extents[0], 64, 64}, flat = {count_of(value.extents)};
  const Memory memory(bench.device(), value.dtype, longer);
  const bp_tensor_t good = memory.tensor();
  struct {
    const char* what;
    bp_dtype_t dtype;
    Extents extents;
    bool is_type = true;  // whether it is a valid type, though not the input's
  } wrong[] = {{"type", BP_DTYPE_INT64, value.extents},
               {"rank", value.dtype, flat},
               {"extent", value.dtype, value.extents},
               {"rank above 32", value.dtype, Extents(40, 1), false},
               {"negative extent", value.dtype, value.extents, false}};
  wrong[2].extents[0] += 1;
  wrong[4].extents[0] = -1;
  for (const auto& [what, dtype, extents, is_type] : wrong) {
    bp_tensor_t tensor = good;
    tensor.dtype = dtype;
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    const Answer answer = s.instance->bind(0, tensor);
    if (answer.status == BP_TYPE_MISMATCH || (!is_type && answer.status == BP_INVALID_ARGUMENT)) continue;
    return fmt::format("binding an input with a wrong {} returns {}, not BP_TYPE_MISMATCH{}", what,
                       status_name(answer.status), explained(answer));
  }
  for (const uint32_t slot : {77u, BP_SLOT_OUTPUT + 77u, 0xFFFFFFFFu}) {
    const Answer answer = s.instance->bind(slot, good);
    if (BP_STATUS_CLASS(answer.status) != BP_CLASS_FIX_CALL) {
      return fmt::format("binding slot {:#x}, which does not exist, returns {}{}", slot, status_name(answer.status),
                         explained(answer));
    }
  }
  return "";
}

// Unaligned memory must be used correctly, or refused with BP_UNSUPPORTED by `bind` or by the run.
std::string misaligned(Bench& bench, Fixture& s) {
  const GraphSpec& spec = s.program->graph().spec();
  for (const uint64_t offset : {1u, 2u, 4u, 16u}) {
    std::vector<std::unique_ptr<Memory>> memories;
    Answer refusal;
    const auto bind = [&](uint32_t slot, uint32_t value) -> Memory& {
      const ValueSpec& v = spec.values[value];
      memories.push_back(std::make_unique<Memory>(bench.device(), v.dtype, v.extents, offset));
      const Answer answer = s.instance->bind(slot, *memories.back());
      if (refusal.ok() || (!answer.ok() && answer.status != BP_UNSUPPORTED)) refusal = answer;
      return *memories.back();
    };
    for (uint32_t i = 0; i < spec.inputs.size(); ++i) bind(i, spec.inputs[i]).write(s.subject->inputs[i]);
    Memory& output = bind(BP_SLOT_OUTPUT, spec.outputs[0]);
    output.poison();
    if (refusal.ok()) refusal = s.instance->run();
    if (const std::string fault = output.breach(); !fault.empty()) return fault;
    if (refusal.status == BP_UNSUPPORTED) continue;
    if (!refusal.ok())
      return fmt::format("with memory {} bytes off its alignment, {} returns {}, not BP_UNSUPPORTED{}", offset,
                         name_of(refusal.stage), status_name(refusal.status), explained(refusal));
    if (const std::string fault = s.subject->fault({output.read()}); !fault.empty()) {
      return fmt::format("with memory {} bytes off its alignment: {}", offset, fault);
    }
  }
  return "";
}

std::string null_arguments(Bench& bench, Fixture& s) {
  const bp_plugin_t& plugin = bench.device().plugin();
  bp_program_t* program = nullptr;
  if (plugin.program->compile(bench.device().raw(), nullptr, &program, nullptr) == BP_OK)
    return "compile of NULL returns BP_OK";
  if (plugin.instance->bind(s.instance->raw(), nullptr, nullptr) == BP_OK) return "bind of NULL returns BP_OK";
  if (plugin.instance->run(s.instance->raw(), nullptr, nullptr) == BP_OK) return "run of NULL returns BP_OK";
  const bp_binding_t nothing = {.size = sizeof nothing, .slot = 0};
  if (plugin.instance->bind(s.instance->raw(), &nothing, nullptr) == BP_OK) return "an empty binding returns BP_OK";
  return "";
}

std::string cancelled(Bench&, Fixture& s) {
  bp_cancel_t token;
  token.set = true;
  if (const Answer answer = s.instance->bind_all(s.subject->inputs); !answer.ok()) return answer.describe();
  std::vector<onnx::Tensor> outputs;
  RunSettings settings;
  settings.cancel = &token;
  const Answer answer = s.instance->run_checked(outputs, settings);
  if (answer.status == BP_CANCELLED) return "";
  return answer.ok() ? s.subject->fault(outputs) : "a cancelled run: " + answer.describe();
}

std::string late(Bench&, Fixture& s) {
  if (const Answer answer = s.instance->bind_all(s.subject->inputs); !answer.ok()) return answer.describe();
  std::vector<onnx::Tensor> outputs;
  RunSettings settings;
  settings.deadline = now_ns() - 1;
  Answer answer = s.instance->run_checked(outputs, settings);
  if (answer.status != BP_TIMED_OUT)
    return fmt::format("a run after its deadline returns {}, not BP_TIMED_OUT{}", status_name(answer.status),
                       explained(answer));
  settings.deadline = now_ns() + 60'000'000'000u;
  answer = s.instance->run_checked(outputs, settings);
  return answer.ok() ? "" : "a run long before its deadline: " + answer.describe();
}

std::string repeated(Bench&, Fixture& s) {
  if (const Answer answer = s.instance->bind_all(s.subject->inputs); !answer.ok()) return answer.describe();
  for (int i = 0; i < 20; ++i) {  // outputs are poisoned before each run, so that stale results fail
    std::vector<onnx::Tensor> outputs;
    if (const Answer answer = s.instance->run_checked(outputs); !answer.ok()) return answer.describe();
    if (const std::string fault = s.subject->fault(outputs); !fault.empty())
      return fmt::format("run {}: {}", i + 1, fault);
  }
  return "";
}

// The instance must read new data from memory that is already bound.
std::string new_data(Bench&, Fixture& s) {
  if (const Answer answer = s.instance->bind_all(s.subject->inputs); !answer.ok()) return answer.describe();
  Subject other{s.subject->problem, {}, nullptr, {}, s.subject->flushes};
  for (uint64_t round = 0; round < 5; ++round) {
    Random random(round, "new data");
    uint32_t slot = 0;
    for (Argument& argument : other.problem.arguments) {
      if (!argument.tensor || argument.constant) continue;
      argument.tensor = random_tensor(random, argument.tensor->dtype, argument.tensor->extents, Fill::kAroundZero);
      s.instance->input(slot++).write(*argument.tensor);
    }
    other.references = reference(other.problem);
    std::vector<onnx::Tensor> outputs;
    if (const Answer answer = s.instance->run_checked(outputs); !answer.ok()) return answer.describe();
    if (const std::string fault = other.fault(outputs); !fault.empty())
      return fmt::format("with new data in bound memory: {}", fault);
  }
  return "";
}

// Makes the host fail its allocations after 0, 1, 2, … successes, until a whole computation runs without a failure.
Result no_memory(Bench& bench, const char* op_case) {
  Host host;
  const Library& library = bench.library();
  const Backend backend(library, host);
  const Device device(backend, bench.device_index());
  Result result;
  const auto subject = make_subject(device, problem_of(op_case, bench.seed(), "memory"), result);
  if (subject == nullptr) return result;
  for (uint64_t successes = 0; successes < 200; ++successes) {
    const uint64_t failures = host.failures();
    host.fail_after(successes);
    std::vector<onnx::Tensor> outputs;
    const Answer answer = compute(device, *subject->graph, subject->inputs, outputs);
    host.stop_failing();
    const bool met_failure = host.failures() != failures;
    if (!answer.ok() && answer.status != BP_RESOURCE_EXHAUSTED)
      return failed(met_failure
                        ? fmt::format("when the host fails allocation {}, it must return BP_RESOURCE_EXHAUSTED: {}",
                                      successes + 1, answer.describe())
                        : "when the host fails no allocation: " + answer.describe());
    if (answer.ok()) {
      if (const std::string fault = subject->fault(outputs); !fault.empty())
        return failed(fmt::format("when the host fails {}: {}",
                                  met_failure ? fmt::format("allocation {}", successes + 1) : "no allocation", fault));
    }
    const Answer healed = compute(device, *subject->graph, subject->inputs, outputs);
    if (!healed.ok()) return failed("after memory ran out and came back: " + healed.describe());
    if (const std::string fault = subject->fault(outputs); !fault.empty())
      return failed("after memory ran out and came back: " + fault);
    if (!met_failure) return passed(1);
  }
  return failed("a computation makes more than 200 allocations of host memory, too many for this case");
}

}  // namespace

void add_robustness(const Selection&, std::vector<Case>& out_cases) {
  const struct {
    const char* name;
    std::string (*check)(Bench&, Fixture&);
  } rows[] = {{"unbound", unbound},
              {"small_buffers", small_buffers},
              {"wrong_tensors", wrong_tensors},
              {"misaligned", misaligned},
              {"null_arguments", null_arguments},
              {"cancelled", cancelled},
              {"late", late},
              {"repeated", repeated},
              {"new_data", new_data}};
  for (const auto& row : rows) {
    out_cases.push_back({fmt::format("robustness/{}", row.name),
                         [check = row.check](Bench& bench) { return with_fixture(bench, check); }});
  }
  for (const char* op_case : {"Add/float/same", "MatMul/float/odd_positive_constant", "Conv/float/3x3_padded_positive",
                              "Softmax/float/last", "Concat/float/rows"}) {
    out_cases.push_back({fmt::format("robustness/no_memory/{}", op_case),
                         [op_case](Bench& bench) { return no_memory(bench, op_case); }});
  }
}

}  // namespace backplane::conform
