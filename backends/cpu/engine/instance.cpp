// SPDX-License-Identifier: Apache-2.0
#include "engine/instance.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/device.h"
#include "engine/fence.h"

namespace backplane::cpu {

namespace {

uint64_t now() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

// Whether strides say the same as dense row-major; those of extents below 2 mean nothing.
bool dense(const bp_tensor_t& tensor) {
  if (tensor.layout == BP_LAYOUT_DENSE) return true;
  if (tensor.layout != BP_LAYOUT_STRIDED || tensor.strides == nullptr) return false;
  int64_t step = 1;
  for (uint32_t d = tensor.rank; d-- > 0;) {
    if (tensor.extents[d] > 1 && tensor.strides[d] != step) return false;
    step *= tensor.extents[d];
  }
  return true;
}

void* address(const bp_buffer_t& buffer) {
  return buffer.address == nullptr ? nullptr : static_cast<std::byte*>(buffer.address) + buffer.offset;
}

}  // namespace

Instance::Instance(const Program& program)
    : program_(program),
      inputs_(program.graph().input_count),
      outputs_(program.graph().output_count),
      extents_(program.graph().input_count) {
  given_.resize(outputs_.size());
}

Instance::Slot& Instance::slot_of(uint32_t slot, uint32_t* out_value) {
  const bp_graph_t& graph = program_.graph();
  if (slot < graph.input_count) {
    *out_value = graph.inputs[slot];
    return inputs_[slot];
  }
  if (slot >= BP_SLOT_OUTPUT && slot - BP_SLOT_OUTPUT < graph.output_count) {
    *out_value = graph.outputs[slot - BP_SLOT_OUTPUT];
    return outputs_[slot - BP_SLOT_OUTPUT];
  }
  throw Failure(BP_INVALID_ARGUMENT, "slot " + std::to_string(slot) + " does not exist: the program has " +
                                         std::to_string(graph.input_count) + " inputs and " +
                                         std::to_string(graph.output_count) + " outputs, and wants no scratch memory");
}

std::string Instance::name_of(uint32_t slot, uint32_t value) const {
  bp_text_t name = bp_graph_value(&program_.graph(), value)->name;
  return std::string(slot < BP_SLOT_OUTPUT ? "input" : "output") + " '" + std::string(name.data, name.size) + "'";
}

void Instance::check_extents(uint32_t slot, uint32_t value, const Shape& shape, uint64_t capacity) const {
  const bp_type_t& type = program_.type_of(value);
  if (!program_.admits(type, shape.span())) {
    throw Failure(BP_TYPE_MISMATCH,
                  name_of(slot, value) + ": extents " + text_of(shape) + " do not fit the declared type");
  }
  int64_t elements = 1;
  bool beyond = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw Failure(BP_INVALID_ARGUMENT, name_of(slot, value) + ": an extent is " + std::to_string(extent));
    beyond = beyond || __builtin_mul_overflow(elements, extent, &elements);
  }
  if (beyond || elements > (int64_t{1} << 56))
    throw Failure(BP_INVALID_ARGUMENT, name_of(slot, value) + ": extents " + text_of(shape) + " are too large");
  auto needed = static_cast<uint64_t>(bytes_of(type.dtype, elements));
  if (needed > capacity) {
    throw Failure(BP_BUFFER_TOO_SMALL, name_of(slot, value) + ": extents " + text_of(shape) + " need " +
                                           std::to_string(needed) + " bytes, the buffer has " +
                                           std::to_string(capacity));
  }
}

void Instance::bind(const bp_binding_t& binding) {
  uint32_t value = BP_NONE;
  Slot& slot = slot_of(binding.slot, &value);
  if (binding.container != nullptr || binding.tensor == nullptr) {
    throw Failure(BP_UNSUPPORTED, name_of(binding.slot, value) + ": only tensors can be bound");
  }
  const bp_tensor_t& tensor = checked<bp_tensor_t>(binding.tensor, "binding.tensor");
  const bp_type_t& type = program_.type_of(value);
  if (tensor.dtype != type.dtype) {
    throw Failure(BP_TYPE_MISMATCH, name_of(binding.slot, value) + ": data type " + std::to_string(tensor.dtype) +
                                        " was given, the program has " + std::to_string(type.dtype));
  }
  if (tensor.rank > BP_MAX_RANK || (tensor.rank != 0 && tensor.extents == nullptr)) {
    throw Failure(BP_INVALID_ARGUMENT,
                  name_of(binding.slot, value) + ": rank " + std::to_string(tensor.rank) + " without valid extents");
  }
  if (tensor.buffer.memory != nullptr) {
    throw Failure(BP_UNSUPPORTED, name_of(binding.slot, value) + ": the buffer is not in host memory");
  }
  if (!dense(tensor))
    throw Failure(BP_UNSUPPORTED, name_of(binding.slot, value) + ": only dense row-major tensors can be bound");

  Shape shape({tensor.extents, tensor.rank});
  uint64_t capacity = tensor.buffer.address == nullptr ? 0 : tensor.buffer.bytes;
  check_extents(binding.slot, value, shape, capacity);
  void* where = address(tensor.buffer);
  auto align = static_cast<uintptr_t>(std::clamp<int64_t>(bytes_of(type.dtype, 1), 1, 8));
  if (reinterpret_cast<uintptr_t>(where) % align != 0) {
    throw Failure(BP_INVALID_ARGUMENT, name_of(binding.slot, value) +
                                           ": the address is no multiple of the element size " + std::to_string(align));
  }
  if (!slot.bound || !(slot.shape == shape)) extents_changed_ = true;
  addresses_changed_ = true;
  slot = {shape, where, capacity, true};
}

void Instance::set_extents(uint32_t slot_number, uint32_t rank, const int64_t* extents) {
  uint32_t value = BP_NONE;
  Slot& slot = slot_of(slot_number, &value);
  if (!slot.bound) throw Failure(BP_BAD_STATE, name_of(slot_number, value) + " is not bound; call bind first");
  if (rank > BP_MAX_RANK || (rank != 0 && extents == nullptr))
    throw Failure(BP_INVALID_ARGUMENT, "extents of rank " + std::to_string(rank) + " are not valid");
  Shape shape({extents, rank});
  check_extents(slot_number, value, shape, slot.capacity);
  if (!(slot.shape == shape)) extents_changed_ = true;
  slot.shape = shape;
}

// Takes the schedule for the bound extents, and memory for it.
void Instance::prepare() {
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].bound)
      throw Failure(BP_BAD_STATE, name_of(i, program_.graph().inputs[i]) + " is not bound; call bind first");
    extents_[i] = inputs_[i].shape;
  }
  std::shared_ptr<const Schedule> schedule = program_.schedule(extents_);
  if (schedule->arena_bytes > arena_bytes_) {
    arena_.reset();
    arena_bytes_ = -1;
    arena_ = allocate(schedule->arena_bytes);
    arena_bytes_ = schedule->arena_bytes;
  }
  schedule_ = std::move(schedule);
  operands_.clear();
  operands_.reserve(schedule_->operands.size());
  for (uint32_t value : schedule_->operands)
    operands_.push_back(value == BP_NONE ? Tensor{} : schedule_->values[value]);
  addresses_changed_ = true;
}

// Where outputs with known extents go: bound memory if there is any, else what the run gives.
void Instance::ask_outputs(const bp_run_t& run) {
  const bp_graph_t& graph = program_.graph();
  for (uint32_t o = 0; o < outputs_.size(); ++o) {
    given_[o] = nullptr;
    uint32_t value = graph.outputs[o];
    if (!schedule_->shaped[value]) {
      if (run.output == nullptr) {
        throw Failure(BP_BAD_STATE,
                      name_of(BP_SLOT_OUTPUT, value) + " has data-dependent extents; set bp_run_t.output");
      }
      continue;
    }
    const Tensor& tensor = schedule_->values[value];
    if (outputs_[o].bound) {
      check_extents(BP_SLOT_OUTPUT + o, value, tensor.shape, outputs_[o].capacity);
    } else if (run.output != nullptr) {
      given_[o] = ask_output(run, o, tensor);
      addresses_changed_ = true;
    } else {
      throw Failure(BP_BAD_STATE, name_of(BP_SLOT_OUTPUT, value) + " is not bound; call bind first");
    }
  }
}

void* Instance::ask_output(const bp_run_t& run, uint32_t output, const Tensor& tensor) {
  bp_tensor_t given{};
  given.size = sizeof(given);
  bp_status_t status = run.output(run.self, BP_SLOT_OUTPUT + output, static_cast<uint32_t>(tensor.shape.rank()),
                                  tensor.shape.begin(), 0, &given);
  std::string name = name_of(BP_SLOT_OUTPUT, program_.graph().outputs[output]);
  if (status != BP_OK) throw Failure(status, name + ": the run gave no memory for extents " + text_of(tensor.shape));
  auto needed = static_cast<uint64_t>(bytes_of(tensor.dtype, tensor.shape.elements()));
  if (needed != 0 && (given.buffer.address == nullptr || given.buffer.bytes < needed)) {
    throw Failure(BP_BUFFER_TOO_SMALL, name + ": extents " + text_of(tensor.shape) + " need " + std::to_string(needed) +
                                           " bytes, the run gave " + std::to_string(given.buffer.bytes));
  }
  return address(given.buffer);
}

void* Instance::address_of(uint32_t value) const {
  const Location& location = schedule_->locations[value];
  switch (location.place) {
    case Place::kNowhere:
      return nullptr;
    case Place::kKnown:
      return schedule_->values[location.index].data;
    case Place::kInput:
      return inputs_[location.index].address;
    case Place::kOutput:
      return given_[location.index] != nullptr ? given_[location.index] : outputs_[location.index].address;
    case Place::kArena:
      return arena_.get() + location.offset;
  }
  return nullptr;
}

void Instance::resolve() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (schedule_->operands[i] != BP_NONE) operands_[i].data = address_of(schedule_->operands[i]);
  }
}

void Instance::run(const bp_run_t& run) {
  if (busy_.exchange(true, std::memory_order_acquire))
    throw Failure(BP_BUSY, "the instance runs already; make one instance for each concurrent run");
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } release{busy_};
  const bp_host_t* host = program_.device().host();
  if (run.stream != nullptr)
    throw Failure(BP_UNSUPPORTED, "the cpu device is synchronous and has no streams; leave bp_run_t.stream null");
  for (uint32_t i = 0; i < run.wait_count + run.signal_count; ++i) {
    const bp_point_t& point = i < run.wait_count ? run.waits[i] : run.signals[i - run.wait_count];
    if (point.semaphore == nullptr)
      throw Failure(BP_UNSUPPORTED, "the cpu device waits for and signals semaphores of the host only");
  }
  UseThreads use(program_.device().threads());
  if (extents_changed_) prepare();
  extents_changed_ = false;

  if (run.wait_count == 0 && run.signal_count == 0 && run.done == nullptr) return execute(run);
  auto end = [&](bp_status_t status, const char* text, uint64_t node) {
    if (run.done != nullptr) {
      bp_error_t error{sizeof(error),     status,           node, 0, 0, 0, const_cast<char*>(text),
                       std::strlen(text), std::strlen(text)};
      run.done(run.self, status, status == BP_OK ? nullptr : &error);
    }
    for (uint32_t i = 0; i < run.signal_count; ++i)
      host->semaphore_signal(host, run.signals[i].semaphore, run.signals[i].value, status);
  };
  try {
    for (uint32_t i = 0; i < run.wait_count; ++i) {
      bp_status_t status = host->semaphore_wait(host, run.waits[i].semaphore, run.waits[i].value,
                                                run.deadline == 0 ? BP_FOREVER : run.deadline, run.cancel);
      if (status != BP_OK) throw Failure(status, "a semaphore that the run waited for did not reach its value");
    }
    execute(run);
  } catch (const Failure& failure) {
    end(failure.status, failure.what(), failure.node);
    throw;
  } catch (const std::bad_alloc&) {
    end(BP_RESOURCE_EXHAUSTED, "out of host memory", BP_NO_NODE);
    throw;
  } catch (...) {
    end(BP_INTERNAL, "an unexpected exception", BP_NO_NODE);
    throw;
  }
  end(BP_OK, "", BP_NO_NODE);
}

void Instance::execute(const bp_run_t& run) {
  if (addresses_changed_ || run.output != nullptr || !schedule_->later.empty()) {
    ask_outputs(run);
    if (addresses_changed_) resolve();
    addresses_changed_ = std::any_of(given_.begin(), given_.end(), [](void* given) { return given != nullptr; });
  }
  check_time(run);
  run_static(run);
  if (!schedule_->later.empty()) run_later(run);
  copy_outputs(run);
}

void Instance::check_time(const bp_run_t& run) const {
  const bp_host_t* host = program_.device().host();
  if (run.cancel != nullptr && host->cancelled(host, run.cancel)) throw Failure(BP_CANCELLED, "the run was cancelled");
  if (run.deadline != 0 && now() >= run.deadline) throw Failure(BP_TIMED_OUT, "the deadline of the run passed");
}

void Instance::run_step(const Step& step, const bp_node_t& node, std::span<const Tensor> inputs,
                        std::span<const Tensor> outputs, void* scratch, const bp_run_t& run) const {
  const bp_host_t* host = program_.device().host();
  bool traced = host->tracing != nullptr && host->tracing(host) != 0;
  uint64_t begin = traced ? now() : 0;
  if (auto failed = step.run(inputs, outputs, scratch))
    throw Failure(BP_INVALID_ARGUMENT, describe(node) + ": " + *failed, node.id);
  if (!traced) return;
  bp_span_t span{};
  span.size = sizeof(span);
  span.kind = BP_SPAN_COMPUTE;
  span.begin = begin;
  span.end = now();
  span.trace_id = run.trace_id;
  span.node = node.id;
  span.name = node.op_type;
  host->trace(host, &span);
}

void Instance::run_static(const bp_run_t& run) {
  bool watched = run.cancel != nullptr || run.deadline != 0;
  for (const Action& action : schedule_->actions) {
    if (watched) check_time(run);
    const Tensor* operands = operands_.data() + action.first_operand;
    run_step(*action.step, *action.node, {operands, action.input_count},
             {operands + action.input_count, action.output_count}, arena_.get() + action.scratch, run);
  }
}

void Instance::run_later(const bp_run_t& run) {
  values_ = schedule_->values;
  for (uint32_t v = 0; v < values_.size(); ++v) values_[v].data = address_of(v);
  holders_.assign(values_.size(), nullptr);
  uses_.assign(values_.size(), 0);
  for (uint32_t index : schedule_->later) {
    for (uint32_t value : program_.calls()[index].inputs) {
      if (value != BP_NONE) ++uses_[value];
    }
  }
  for (uint32_t o = 0; o < outputs_.size(); ++o) ++uses_[program_.graph().outputs[o]];
  for (uint32_t index : schedule_->later) {
    check_time(run);
    run_later_call(program_.calls()[index], run);
  }
}

void Instance::run_later_call(const Call& call, const bp_run_t& run) {
  std::vector<Tensor> inputs = gather(call.inputs, values_);
  Plan plan = with_dense_operands(call.kernel->plan(inputs), inputs);
  if (!plan.step) {
    std::string why = plan.later ? "its extents cannot be told even with all inputs known" : plan.error;
    throw Failure(plan.later ? BP_INTERNAL : BP_TYPE_MISMATCH, describe(*call.node) + ": " + why, call.node->id);
  }
  int alias = plan.step->alias();
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    uint32_t value = call.outputs[i];
    if (value == BP_NONE) continue;
    values_[value].shape = plan.shapes.at(i);
    if (alias >= 0 && i == 0) {
      uint32_t source = call.inputs[static_cast<size_t>(alias)];
      values_[value].data = values_[source].data;
      holders_[value] = holders_[source];
    } else {
      allocate_output(call, i, run);
    }
  }
  if (alias < 0) {
    Block scratch = allocate(plan.step->scratch_bytes());
    run_step(*plan.step, *call.node, inputs, gather(call.outputs, values_), scratch.get(), run);
  }
  for (uint32_t value : call.inputs) {
    if (value != BP_NONE && --uses_[value] == 0) holders_[value] = nullptr;
  }
}

// A graph output is written where the run wants it, everything else lies in memory of its own until its last use.
void Instance::allocate_output(const Call& call, size_t index, const bp_run_t& run) {
  const bp_graph_t& graph = program_.graph();
  uint32_t value = call.outputs[index];
  Tensor& tensor = values_[value];
  int64_t bytes = checked_bytes(tensor.dtype, tensor.shape, *call.node);
  const uint32_t* output = std::find(graph.outputs, graph.outputs + graph.output_count, value);
  if (output != graph.outputs + graph.output_count) {
    auto o = static_cast<size_t>(output - graph.outputs);
    given_[o] = ask_output(run, static_cast<uint32_t>(o), tensor);
    tensor.data = given_[o];
    if (tensor.data != nullptr) return;
  }
  holders_[value] = std::shared_ptr<std::byte>(allocate(bytes));
  tensor.data = holders_[value].get();
}

void Instance::copy_outputs(const bp_run_t& run) {
  auto copy = [&](uint32_t output, const void* from, const Tensor& tensor) {
    void* to = given_[output] != nullptr ? given_[output] : outputs_[output].address;
    auto bytes = static_cast<size_t>(bytes_of(tensor.dtype, tensor.shape.elements()));
    if (bytes != 0 && to != from) std::memmove(to, from, bytes);
  };
  const bp_graph_t& graph = program_.graph();
  for (uint32_t o : schedule_->copied) copy(o, address_of(graph.outputs[o]), schedule_->values[graph.outputs[o]]);
  if (schedule_->later.empty()) return;
  for (uint32_t o = 0; o < outputs_.size(); ++o) {
    uint32_t value = graph.outputs[o];
    if (schedule_->shaped[value]) continue;
    if (given_[o] == nullptr) given_[o] = ask_output(run, o, values_[value]);
    copy(o, values_[value].data, values_[value]);
  }
  for (auto& holder : holders_) holder = nullptr;
}

}  // namespace backplane::cpu
