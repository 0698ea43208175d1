// SPDX-License-Identifier: Apache-2.0
#include "host/program.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace backplane::conform {

std::unique_ptr<Program> Program::compile(const Device& device, const Graph& graph, Answer& out_answer,
                                          const bp_cancel_t* cancel, uint32_t flags) {
  const bp_compile_t what = {.size = sizeof what,
                             .graph = graph.table(),
                             .option_stride = sizeof(bp_option_t),
                             .flags = flags,
                             .cancel = cancel};
  Detail detail;
  auto* raw = reinterpret_cast<bp_program_t*>(1);
  const bp_status_t status = device.plugin().program->compile(device.raw(), &what, &raw, detail.error());
  out_answer = {status, Stage::kCompile, detail.text()};
  return made(device, graph, raw, out_answer);
}

std::unique_ptr<Program> Program::restore(const Device& device, const Graph& graph, bp_bytes_t blob,
                                          Answer& out_answer) {
  const bp_compile_t what = {.size = sizeof what, .graph = graph.table(), .option_stride = sizeof(bp_option_t)};
  Detail detail;
  auto* raw = reinterpret_cast<bp_program_t*>(1);
  const bp_status_t status = device.plugin().cache->deserialize(device.raw(), &what, blob, &raw, detail.error());
  out_answer = {status, Stage::kCache, detail.text()};
  return made(device, graph, raw, out_answer);
}

std::unique_ptr<Program> Program::made(const Device& device, const Graph& graph, bp_program_t* raw,
                                       const Answer& answer) {
  if (!answer.ok()) {
    if (raw != nullptr)
      throw Breach(fmt::format("{} fails but does not set its out-argument to NULL", name_of(answer.stage)));
    return nullptr;
  }
  if (raw == nullptr) throw Breach(fmt::format("{} returns BP_OK but no program", name_of(answer.stage)));
  return std::unique_ptr<Program>(new Program(device, graph, raw));
}

Program::~Program() {
  device_.plugin().program->destroy(raw_);
}

bp_program_info_t Program::info() const {
  bp_program_info_t info = {.size = sizeof info};
  Detail detail;
  const bp_status_t status = device_.plugin().program->info(raw_, &info, detail.error());
  if (status != BP_OK) throw Breach(fmt::format("program info returns {}: {}", status_name(status), detail.text()));
  return info;
}

std::unique_ptr<Instance> Instance::create(const Program& program, Answer& out_answer) {
  bp_instance_t* raw = nullptr;
  Detail detail;
  const bp_instance_create_t how = {.size = sizeof how};
  const bp_status_t status = program.device().plugin().instance->create(program.raw(), &how, &raw, detail.error());
  out_answer = {status, Stage::kInstance, detail.text()};
  if (status != BP_OK) return nullptr;
  if (raw == nullptr) throw Breach("instance create returns BP_OK but no instance");
  return std::unique_ptr<Instance>(new Instance(program, raw));
}

Instance::~Instance() {
  api().destroy(raw_);
}

Answer Instance::bind(uint32_t slot, const Memory& memory) {
  return bind(slot, memory.tensor());
}

Answer Instance::bind(uint32_t slot, bp_tensor_t tensor) {
  const bp_binding_t binding = {.size = sizeof binding, .slot = slot, .tensor = &tensor};
  Detail detail;
  const bp_status_t status = api().bind(raw_, &binding, detail.error());
  return {status, Stage::kBind, detail.text()};
}

Answer Instance::bind(uint32_t slot, bp_container_t& container) {
  const bp_binding_t binding = {.size = sizeof binding, .slot = slot, .container = &container};
  Detail detail;
  const bp_status_t status = api().bind(raw_, &binding, detail.error());
  return {status, Stage::kBind, detail.text()};
}

bp_status_t Instance::provide_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t,
                                     bp_tensor_t* out_tensor) {
  // The expected extents are known, so any other extents are a wrong result.
  Instance& instance = **static_cast<Instance**>(self);
  if (slot < BP_SLOT_OUTPUT || out_tensor == nullptr) return BP_INVALID_ARGUMENT;
  const uint32_t index = slot - BP_SLOT_OUTPUT;
  if (index >= instance.outputs_.size()) return BP_INVALID_ARGUMENT;
  ++instance.asked_[index];
  const bp_tensor_t tensor = instance.outputs_[index]->tensor();
  if (!std::equal(extents, extents + rank, tensor.extents, tensor.extents + tensor.rank)) return BP_BUFFER_TOO_SMALL;
  write_back(tensor, out_tensor);
  return BP_OK;
}

Answer Instance::run(const RunSettings& settings) {
  struct End {
    Instance* instance;  // must be the first member, because `output` receives `&end` and reads it as an Instance**
    std::mutex mutex;
    std::condition_variable changed;
    uint32_t calls = 0;
    bp_status_t status = BP_OK;
  } end{this, {}, {}, 0, BP_OK};
  const bp_run_t run = {.size = sizeof run,
                        .deadline = settings.deadline,
                        .cancel = settings.cancel,
                        .self = &end,
                        .output = provide_output,
                        .done = [](void* self, bp_status_t status, const bp_error_t*) {
                          End& e = *static_cast<End*>(self);
                          const std::lock_guard lock(e.mutex);
                          ++e.calls;
                          e.status = status;
                          e.changed.notify_all();
                        }};
  Detail detail;
  bp_status_t status = api().run(raw_, &run, detail.error());
  const bool synchronous = (program_.device().info().flags & BP_DEVICE_SYNCHRONOUS) != 0;
  const bool accepted = status == BP_OK;
  std::unique_lock lock(end.mutex);
  if (!synchronous && status == BP_OK) {
    end.changed.wait(lock, [&] { return end.calls != 0; });
    status = end.status;
  }
  if (settings.out_done_fault != nullptr) {
    std::string& fault = *settings.out_done_fault;
    if (end.calls > 1) fault = fmt::format("`done` was called {} times for one run", end.calls);
    if (accepted && end.calls == 0) fault = "`done` was not called for a run that returned BP_OK";
    if (!accepted && end.calls != 0)
      fault = fmt::format("`done` was called for a run that returned {}", status_name(status));
    if (accepted && end.calls == 1 && end.status != status) {
      fault =
          fmt::format("`done` was called with {}, but run returned {}", status_name(end.status), status_name(status));
    }
  }
  return {status, Stage::kRun, detail.text()};
}

Answer Instance::start(const bp_run_t& run) {
  Detail detail;
  const bp_status_t status = api().run(raw_, &run, detail.error());
  return {status, Stage::kRun, detail.text()};
}

Answer Instance::bind_all(const std::vector<onnx::Tensor>& inputs, const std::vector<std::vector<int64_t>>& extents) {
  const GraphSpec& spec = program_.graph().spec();
  inputs_.clear();
  outputs_.clear();
  if (Answer answer = find_bound(inputs, extents); !answer.ok()) return answer;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    inputs_.push_back(std::make_unique<Memory>(program_.device(), inputs[i]));
    if (Answer answer = bind(i, *inputs_.back()); !answer.ok()) return answer;
  }
  for (uint32_t i = 0; i < spec.outputs.size(); ++i) {
    const ValueSpec& value = spec.values[spec.outputs[i]];
    outputs_.push_back(
        std::make_unique<Memory>(program_.device(), value.dtype, extents.empty() ? value.extents : extents[i]));
    if (!bound_[i]) continue;
    if (Answer answer = bind(BP_SLOT_OUTPUT + i, *outputs_.back()); !answer.ok()) return answer;
  }
  if (const bp_program_info_t info = program_.info(); info.scratch_bytes != 0) {
    scratch_ = std::make_unique<Memory>(program_.device(), BP_DTYPE_UINT8,
                                        std::vector<int64_t>{static_cast<int64_t>(info.scratch_bytes)});
    return bind(BP_SLOT_SCRATCH, *scratch_);
  }
  return {};
}

Answer Instance::find_bound(const std::vector<onnx::Tensor>& inputs, const std::vector<std::vector<int64_t>>& extents) {
  const GraphSpec& spec = program_.graph().spec();
  bound_.assign(spec.outputs.size(), true);
  asked_ = std::vector<std::atomic<uint32_t>>(spec.outputs.size());
  const auto slot = program_.device().plugin().program->output_extents;
  std::vector<bp_shape_t> shapes(spec.outputs.size(), bp_shape_t{.rank = BP_NONE});
  if (slot != nullptr && program_.info().shapes != BP_SHAPES_STATIC) {
    std::vector<onnx::Tensor> copies = inputs;
    std::vector<bp_tensor_t> tensors;
    for (onnx::Tensor& input : copies) tensors.push_back(input.as_abi());
    const bp_shape_query_t query = {.size = sizeof query,
                                    .input_count = static_cast<uint32_t>(tensors.size()),
                                    .inputs = tensors.data(),
                                    .input_stride = sizeof(bp_tensor_t),
                                    .output_stride = sizeof(bp_shape_t)};
    Detail detail;
    const bp_status_t status = slot(program_.raw(), &query, shapes.data(), detail.error());
    if (status != BP_OK) return {status, Stage::kExtents, detail.text()};
  }
  for (uint32_t i = 0; i < spec.outputs.size(); ++i) {
    const ValueSpec& value = spec.values[spec.outputs[i]];
    const std::vector<int64_t>& expected = extents.empty() ? value.extents : extents[i];
    const bp_shape_t& shape = shapes[i];
    if (shape.rank != BP_NONE && !std::equal(shape.extents, shape.extents + std::min<uint32_t>(shape.rank, BP_MAX_RANK),
                                             expected.begin(), expected.end()))
      return {BP_INTERNAL, Stage::kExtents, fmt::format("the extents of output {} are wrong", i)};
    const bool is_static = std::ranges::none_of(value.extents, [](int64_t extent) { return extent < 0; });
    bound_[i] = value.dtype != BP_DTYPE_STRING && (is_static || shape.rank != BP_NONE);
  }
  return {};
}

Answer Instance::run_checked(std::vector<onnx::Tensor>& out_outputs, const RunSettings& settings) {
  for (const auto& output : outputs_) output->poison();
  for (std::atomic<uint32_t>& asked : asked_) asked = 0;
  std::vector<onnx::Tensor> before;
  for (const auto& input : inputs_) before.push_back(input->read());
  std::string fault;
  RunSettings with_fault = settings;
  with_fault.out_done_fault = &fault;
  const Answer answer = run(with_fault);
  for (const auto* memories : {&inputs_, &outputs_}) {
    for (const auto& memory : *memories) {
      if (fault.empty()) fault = memory->breach();
    }
  }
  if (scratch_ != nullptr && fault.empty()) fault = scratch_->breach();
  for (size_t i = 0; i < outputs_.size() && fault.empty() && answer.ok(); ++i) {
    if (const uint32_t right = bound_[i] ? 0 : 1; asked_[i] != right)
      fault = fmt::format("the run calls `output` {} times for output {}, which is{} bound", asked_[i].load(), i,
                          bound_[i] ? "" : " not");
  }
  for (size_t i = 0; i < inputs_.size() && fault.empty(); ++i) {
    if (inputs_[i]->read().bytes != before[i].bytes) fault = fmt::format("the run changed its input {}", i);
  }
  if (!fault.empty()) return {BP_INTERNAL, Stage::kRun, fault};
  out_outputs.clear();
  for (const auto& output : outputs_) out_outputs.push_back(output->read());
  return answer;
}

Answer compute(const Device& device, const Graph& graph, const std::vector<onnx::Tensor>& inputs,
               std::vector<onnx::Tensor>& out_outputs) {
  Answer answer;
  const auto program = Program::compile(device, graph, answer);
  if (program == nullptr) return answer;
  const auto instance = Instance::create(*program, answer);
  if (instance == nullptr) return answer;
  if (answer = instance->bind_all(inputs); !answer.ok()) return answer;
  return instance->run_checked(out_outputs);
}

}  // namespace backplane::conform
