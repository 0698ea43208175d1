// SPDX-License-Identifier: Apache-2.0
#include "run/run_state.h"

#include <algorithm>
#include <utility>

#include "base/dtype.h"
#include "run/device_status.h"

namespace backplane {

bool same_buffer(const bp_buffer_t& a, const bp_buffer_t& b) {
  return a.memory == b.memory && a.address == b.address && a.offset == b.offset && a.bytes == b.bytes;
}

RunState::RunState(const RunGraph& graph)
    : graph_(graph),
      arenas_(graph.memories.size()),
      imports_(graph.memories.size()),
      values_(graph.values.size()),
      steps_(graph.steps.size()),
      marks_(graph.tasks.size()) {
  for (size_t v = 0; v < values_.size(); ++v) {
    const RunValue& fixed = graph.values[v];
    Value& value = values_[v];
    value.dtype = fixed.dtype;
    value.replicas = std::vector<Buffer>(fixed.replicas.size());
    if (fixed.kind == BP_KIND_TENSOR) continue;
    value.own_container = std::make_unique<bp_container_t>(fixed.kind);
    value.container = value.own_container.get();
  }
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = graph.steps[s];
    steps_[s].slots.resize(step.inputs.size() + step.outputs.size());
    const uint64_t bytes = step.program->info.scratch_bytes;
    if (bytes == 0) continue;
    auto found = std::ranges::find(scratch_, step.program->device, &Scratch::device);
    if (found == scratch_.end()) {
      scratch_.push_back({step.program->device, 0, {}});
      found = std::prev(scratch_.end());
    }
    found->bytes = std::max(found->bytes, bytes);
    steps_[s].scratch = static_cast<uint32_t>(found - scratch_.begin());
  }
}

Result<std::unique_ptr<RunState>> RunState::make(const RunGraph& graph) {
  auto state = std::unique_ptr<RunState>(new RunState(graph));
  BP_TRY(state->create_instances());
  BP_TRY(state->create_lanes());
  return state;
}

Status RunState::create_instances() {
  for (uint32_t s = 0; s < steps_.size(); ++s) BP_TRY(create_instance(s));
  return {};
}

Status RunState::create_instance(uint32_t number) {
  const Program& program = *graph_.steps[number].program;
  if (program.device->given_up()) return program.device->lost();
  bp_instance_create_t how{};
  how.size = sizeof how;
  PluginError error;
  const std::string device = "device '" + program.device->name() + "'";
  BP_TRY(error.status(program.plugin->instance->create(program.handle, &how, &steps_[number].instance, error.get()),
                      device));
  if (!steps_[number].instance) return Status(BP_INTERNAL, device + ": instance.create returned no instance");
  return {};
}

void RunState::drop_instance(uint32_t number) {
  StepState& state = steps_[number];
  graph_.steps[number].program->plugin->instance->destroy(std::exchange(state.instance, nullptr));
  state.slots.assign(state.slots.size(), {});
  state.scratch_generation = 0;
}

Status RunState::create_lanes() {
  for (Device* device : graph_.lanes) {
    BP_ASSIGN(Lane lane, Lane::make(*device));
    lanes_.push_back(std::move(lane));
  }
  for (const Task& task : graph_.tasks) {
    if (task.lane == BP_NONE) continue;
    for (uint32_t before : task.after) {
      const uint32_t other = graph_.tasks[before].lane;
      if (other != BP_NONE && other != task.lane)
        Mark::share(marks_[before], lanes_[other], lanes_[task.lane], task.lane);
    }
  }
  return {};
}

void RunState::stop() {
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Program& program = *graph_.steps[s].program;
    if (bp_instance_t* const instance = std::exchange(steps_[s].instance, nullptr))
      program.device->given_up() ? keep_handle(instance) : program.plugin->instance->destroy(instance);
  }
  lanes_.clear();  // waits for the work in the streams, which may signal a mark even after its `done` was called
  marks_.clear();
  for (Value& value : values_) end_imports(value);
}

// Host memory must stay allocated while a device imports it, so this is called before the value's memory is released.
void RunState::end_imports(Value& value) {
  for (Buffer& replica : value.replicas)
    if (replica.block.is_import()) replica.block.reset();
}

bool RunState::is_bound(uint32_t value) const {
  const uint32_t user_replica = graph_.values[value].user_replica;
  return user_replica != BP_NONE && values_[value].replicas[user_replica].user;
}

bp_tensor_t RunState::tensor(ReplicaRef ref) const {
  const Value& value = values_[ref.value];
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = value.dtype;
  tensor.rank = static_cast<uint32_t>(value.extents.size());
  tensor.extents = value.extents.data();
  if (ref.replica < value.replicas.size()) tensor.buffer = value.replicas[ref.replica].buffer;
  return tensor;
}

// ---- bindings of the framework --------------------------------------------------------------------------------------

void RunState::bind_container(uint32_t index, bp_container_t* container) {
  Value& value = values_[index];
  value.own_container->clear();
  value.container = container;
  value.known = true;
}

void RunState::bind_tensor(uint32_t index, bp_dtype_t dtype, const bp_buffer_t& buffer, uint64_t generation) {
  Value& value = values_[index];
  Buffer& user_replica = value.replicas[graph_.values[index].user_replica];
  if (user_replica.generation != generation) forget_imports(index);
  user_replica.user = true;
  user_replica.buffer = buffer;
  user_replica.generation = generation;
  value.dtype = dtype;
}

void RunState::forget_imports(uint32_t index) {
  end_imports(values_[index]);
  for (Buffer& replica : values_[index].replicas) replica.block.reset();
}

void RunState::set_input_extents(uint32_t index, const std::vector<int64_t>& extents) {
  Value& value = values_[index];
  value.extents = extents;
  value.known = true;
  value.bytes = value.dtype == BP_DTYPE_STRING
                    ? value.replicas[graph_.values[index].user_replica].buffer.bytes
                    : dense_bytes(value.dtype, static_cast<uint32_t>(extents.size()), extents.data());
}

// ---- state that depends on the extents of the inputs ----------------------------------------------------------------

void RunState::forget_plan() {
  for (size_t v = 0; v < values_.size(); ++v) {
    Value& value = values_[v];
    for (Buffer& replica : value.replicas) replica.imported = false;
    if (graph_.values[v].producer != BP_NONE) value.known = graph_.values[v].kind != BP_KIND_TENSOR;
  }
}

Status RunState::set_extents(uint32_t index, std::vector<int64_t> extents) {
  const RunValue& fixed = graph_.values[index];
  Value& value = values_[index];
  value.bytes = dense_bytes(value.dtype, static_cast<uint32_t>(extents.size()), extents.data());
  value.extents = std::move(extents);
  value.known = value.dtype != BP_DTYPE_STRING;
  if (std::ranges::any_of(value.extents, [](int64_t extent) { return extent < 0; }))
    return {BP_INVALID_ARGUMENT,
            "value '" + graph_.name_of(fixed) + "' would have a negative extent: check the extents of the inputs"};
  if (value.bytes == UINT64_MAX)
    return {BP_RESOURCE_EXHAUSTED,
            "value '" + graph_.name_of(fixed) + "' would need 2^64 bytes or more: check the extents of the inputs"};
  if (is_bound(index) && value.known && value.bytes > value.replicas[fixed.user_replica].buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, "output '" + graph_.name_of(fixed) + "' needs " + std::to_string(value.bytes) +
                                     " bytes, but the bound buffer has " +
                                     std::to_string(value.replicas[fixed.user_replica].buffer.bytes)};
  return {};
}

Status RunState::allocate(ReplicaRef ref) {
  const RunValue& fixed = graph_.values[ref.value];
  Value& value = values_[ref.value];
  Buffer& replica = at(ref);
  replica.imported = false;
  const uint32_t memory = fixed.replicas[ref.replica].memory;
  if (memory == 0 && value.bytes > replica.block.buffer().bytes) end_imports(value);
  if (Status status = replica.block.reserve(*graph_.memories[memory], value.bytes); !status.ok())
    return std::move(status).context("value '" + graph_.name_of(fixed) + "'");
  replica.buffer = replica.block.buffer();
  replica.generation = replica.block.generation();
  return {};
}

Status RunState::reserve_arena(uint32_t memory, uint64_t bytes) {
  if (memory == 0 && bytes > arenas_[0].buffer().bytes)
    for (Block& import : imports_) import.reset();  // before the arena that they import is freed
  return arenas_[memory].reserve(*graph_.memories[memory], bytes);
}

void RunState::place_in_arena(ReplicaRef ref, uint64_t offset, uint64_t bytes) {
  const Block& arena = arenas_[graph_.values[ref.value].replicas[ref.replica].memory];
  Buffer& replica = at(ref);
  replica.buffer = part(arena.buffer(), offset, bytes);
  replica.generation = arena.generation();
}

Status RunState::import_from_host(ReplicaRef ref) {
  const RunValue& fixed = graph_.values[ref.value];
  const uint32_t memory = fixed.replicas[ref.replica].memory;
  const uint32_t in_host = fixed.in(0);
  const Buffer& host = values_[ref.value].replicas[in_host];
  Buffer& replica = at(ref);
  replica.imported = true;
  if (graph_.memories[memory]->zero_copy()) {  // the device works on host memory
    replica.buffer = host.buffer;
    replica.generation = host.generation;
    return {};
  }
  const bp_buffer_t& arena = arenas_[0].buffer();
  const bool in_arena = !host.user && in_host != fixed.user_replica;
  Block& import = in_arena ? imports_[memory] : replica.block;
  const bp_buffer_t& whole = in_arena ? arena : host.buffer;
  const Status status = import.import(*graph_.memories[memory], host_address(whole), whole.bytes);
  if (!status.ok()) return BP_STATUS_CLASS(status.code()) != BP_CLASS_FIX_CALL ? status : allocate(ref);
  const auto offset = in_arena ? static_cast<uint64_t>(host_address(host.buffer) - host_address(arena)) : 0;
  replica.buffer = part(import.buffer(), offset, host.buffer.bytes);
  replica.generation = import.generation();
  return {};
}

// ---- slots ----------------------------------------------------------------------------------------------------------

Status RunState::bind_scratch(uint32_t number) {
  StepState& state = steps_[number];
  if (state.scratch == BP_NONE) return {};
  const Step& step = graph_.steps[number];
  Scratch& scratch = scratch_[state.scratch];
  BP_TRY(scratch.block.reserve(*graph_.memories[step.memory], scratch.bytes));
  if (state.scratch_generation == scratch.block.generation()) return {};
  if (step.program->device->given_up()) return step.program->device->lost();
  const uint64_t bytes = step.program->info.scratch_bytes;
  const auto extent = static_cast<int64_t>(bytes);
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_UINT8;
  tensor.rank = 1;
  tensor.extents = &extent;
  tensor.buffer = part(scratch.block.buffer(), 0, bytes);
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = BP_SLOT_SCRATCH;
  binding.tensor = &tensor;
  PluginError error;
  BP_TRY(device_status(*step.program->device, error,
                       step.program->plugin->instance->bind(state.instance, &binding, error.get())));
  state.scratch_generation = scratch.block.generation();
  return {};
}

Status RunState::bind(uint32_t number) {
  const Step& step = graph_.steps[number];
  if (step.program->device->given_up()) return step.program->device->lost();
  std::vector<Slot>& slots = steps_[number].slots;
  const uint32_t inputs = static_cast<uint32_t>(step.inputs.size());
  bool is_bound = false;  // some output is still bound, although the program must request its memory in this run
  for (uint32_t o = 0; o < step.outputs.size(); ++o)
    is_bound |= slots[inputs + o].bound && !values_[step.outputs[o].value].known;
  if (is_bound) drop_instance(number);
  if (!steps_[number].instance) BP_TRY(create_instance(number));
  BP_TRY(bind_scratch(number));
  BP_TRY(free_exchanged(number));
  for (uint32_t i = 0; i < inputs; ++i) BP_TRY(bind_slot(number, i, step.inputs[i], slots[i]));
  for (uint32_t o = 0; o < step.outputs.size(); ++o)
    if (values_[step.outputs[o].value].known)
      BP_TRY(bind_slot(number, BP_SLOT_OUTPUT + o, step.outputs[o], slots[inputs + o]));
  return {};
}

// A plugin may refuse an input's container that is still bound to an output. Where the framework has bound the
// container of an output to an input, the output therefore first gets the value's own container.
Status RunState::free_exchanged(uint32_t number) {
  const Step& step = graph_.steps[number];
  const uint32_t inputs = static_cast<uint32_t>(step.inputs.size());
  for (uint32_t o = 0; o < step.outputs.size(); ++o) {
    Slot& bound = steps_[number].slots[inputs + o];
    const auto is_input = [&](const ReplicaRef& input) { return values_[input.value].container == bound.container; };
    if (!bound.container || std::ranges::none_of(step.inputs, is_input)) continue;
    BP_TRY(bind_container(number, BP_SLOT_OUTPUT + o, values_[step.outputs[o].value].own_container.get(), bound));
  }
  return {};
}

Status RunState::bind_container(uint32_t number, uint32_t slot, bp_container_t* container, Slot& bound) {
  const Program& program = *graph_.steps[number].program;
  if (program.device->given_up()) return program.device->lost();
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = slot;
  binding.container = container;
  PluginError error;
  BP_TRY(device_status(*program.device, error,
                       program.plugin->instance->bind(steps_[number].instance, &binding, error.get())));
  bound.container = container;
  bound.bound = true;
  return {};
}

Status RunState::bind_slot(uint32_t number, uint32_t slot, ReplicaRef ref, Slot& bound) {
  const Program& program = *graph_.steps[number].program;
  const bp_instance_api_t& api = *program.plugin->instance;
  bp_instance_t* const instance = steps_[number].instance;
  const Value& value = values_[ref.value];
  if (graph_.values[ref.value].kind != BP_KIND_TENSOR) return bind_container(number, slot, value.container, bound);
  if (program.device->given_up()) return program.device->lost();
  bp_tensor_t tensor = this->tensor(ref);
  const uint64_t generation = ref.replica == BP_NONE ? 0 : replica(ref).generation;
  PluginError error;
  if (bound.bound && bound.generation == generation && same_buffer(bound.buffer, tensor.buffer)) {
    if (bound.extents == value.extents) return {};
    if (api.extents) {
      bound.bound = false;
      const bp_slot_extents_t extents{slot, tensor.rank, tensor.extents};
      BP_TRY(device_status(*program.device, error, api.extents(instance, &extents, 1, sizeof extents, error.get())));
      bound.extents = value.extents;
      bound.bound = true;
      return {};
    }
  }
  bp_binding_t binding{};
  binding.size = sizeof binding;
  binding.slot = slot;
  binding.tensor = &tensor;
  bound.bound = false;
  BP_TRY(device_status(*program.device, error, api.bind(instance, &binding, error.get())));
  bound = {tensor.buffer, generation, value.extents, true, nullptr};
  return {};
}

// ---- what a run computes --------------------------------------------------------------------------------------------

Status RunState::set_result(ReplicaRef ref, std::span<const int64_t> extents, uint64_t bytes) {
  Value& value = values_[ref.value];
  const auto rank = static_cast<uint32_t>(extents.size());
  value.bytes = value.dtype == BP_DTYPE_STRING ? bytes : dense_bytes(value.dtype, rank, extents.data());
  value.extents.assign(extents.begin(), extents.end());
  if (value.bytes == UINT64_MAX) return {BP_RESOURCE_EXHAUSTED, "a result is larger than memory"};
  const Buffer& replica = this->replica(ref);
  if (!replica.user) {
    BP_TRY(allocate(ref));
  } else if (value.bytes > replica.buffer.bytes) {
    return {BP_BUFFER_TOO_SMALL, "a result is larger than the bound buffer"};
  }
  value.known = true;
  return {};
}

Status RunState::set_passthrough(uint32_t index, bp_dtype_t dtype, const std::vector<int64_t>& extents,
                                 uint64_t bytes) {
  const RunValue& fixed = graph_.values[index];
  Value& value = values_[index];
  value.extents = extents;
  value.bytes = bytes;
  value.dtype = dtype;
  const ReplicaRef user_replica{index, fixed.user_replica};
  if (!replica(user_replica).user) BP_TRY(allocate(user_replica));
  if (bytes > replica(user_replica).buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, "output '" + graph_.name_of(fixed) + "' needs " + std::to_string(bytes) +
                                     " bytes, but the bound buffer has " +
                                     std::to_string(replica(user_replica).buffer.bytes)};
  return {};
}

}  // namespace backplane
