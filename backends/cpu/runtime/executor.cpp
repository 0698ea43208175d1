// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <algorithm>

#include "backplane/sdk/fence.hpp"
#include "runtime/choices.h"
#include "runtime/dense_plan.h"
#include "runtime/device.h"

namespace backplane::cpu {

namespace {

// Runs a step and records it as a span in the run's trace.
void run_step(const Step& step, const bp_node_t& node, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
              void* scratch, const RunContext& context) {
  uint64_t begin = context.begin_span();
  at_node(node, [&] {
    if (auto failed = step.run(inputs, outputs, scratch)) throw sdk::Error(BP_INVALID_ARGUMENT, *failed);
  });
  context.end_span(begin, node);
}

}  // namespace

Executor::Executor(const Program& program)
    : program_(program),
      inputs_(program.inputs().size()),
      extents_(program.inputs().size()),
      targets_(program.graph().output_count) {}

void Executor::set_input(uint32_t index, Value value) {
  uint32_t id = program_.inputs()[index];
  const bp_type_t& type = program_.type_of(id);
  value = as_declared(std::move(value), type);
  bool changed = !inputs_[index].present() || !(extents_[index] == value.tensor.shape);
  if (value.kind != type.kind ||
      value.tensor.dtype != (type.kind == BP_KIND_TENSOR ? type.dtype : BP_DTYPE_UNDEFINED) ||
      (changed && value.kind == BP_KIND_TENSOR && !program_.admits(type, value.tensor.shape.span()))) {
    throw sdk::Error(BP_TYPE_MISMATCH, program_.name_of(id) + " is set to " + describe_value(value) +
                                           ", which does not fit its declared type");
  }
  extents_changed_ = extents_changed_ || changed;
  addresses_changed_ = addresses_changed_ || inputs_[index].tensor.data != value.tensor.data;
  extents_[index] = value.tensor.shape;
  inputs_[index] = std::move(value);
}

void Executor::clear() {
  for (Value& input : inputs_) {
    input.holder = nullptr;
    input.elements = nullptr;
  }
  for (Outputs::Memory& target : targets_) target = {};
  values_.clear();
}

void Executor::prepare() {
  if (!extents_changed_) return;
  std::shared_ptr<const Schedule> schedule = program_.schedule(extents_);
  if (schedule->arena_bytes > arena_bytes_) {
    UseThreads use(program_.device().threads());
    arena_.reset();
    arena_bytes_ = -1;
    arena_ = allocate_pages(schedule->arena_bytes);
    arena_bytes_ = schedule->arena_bytes;
  }
  schedule_ = std::move(schedule);
  operands_.clear();
  operands_.reserve(schedule_->operands.size());
  for (uint32_t value : schedule_->operands)
    operands_.push_back(value == BP_NONE ? Tensor{} : schedule_->values[value]);
  plans_.clear();
  plans_.resize(schedule_->deferred.empty() ? 0 : program_.calls().size());
  addresses_changed_ = true;
  extents_changed_ = false;
}

void Executor::run(Outputs& outputs, const RunContext& context) {
  prepare();
  place_outputs(outputs);
  if (addresses_changed_) resolve();
  addresses_changed_ = false;
  context.check();
  run_static(context);
  const bp_graph_t& graph = program_.graph();
  bool has_deferred = !schedule_->deferred.empty();
  if (has_deferred) run_deferred(outputs, context);
  for (uint32_t o = 0; o < graph.output_count; ++o) {
    if (has_deferred)
      outputs.take(o, leave(values_[graph.outputs[o]]));
    else if (!written_in_place(o))
      outputs.take(o, leave(value_of(graph.outputs[o])));
  }
  values_.clear();
}

bool Executor::written_in_place(uint32_t output) const {
  const Location& location = schedule_->locations[program_.graph().outputs[output]];
  return location.place == Place::kOutput && location.index == output;
}

// Requests memory from the caller for those outputs that steps write directly.
void Executor::place_outputs(Outputs& outputs) {
  const bp_graph_t& graph = program_.graph();
  for (uint32_t o = 0; o < graph.output_count; ++o) {
    Outputs::Memory target;
    if (written_in_place(o)) target = outputs.memory(o, schedule_->values[graph.outputs[o]]);
    addresses_changed_ = addresses_changed_ || target.data != targets_[o].data;
    targets_[o] = std::move(target);
  }
}

void* Executor::address_of(uint32_t value) const {
  const Location& location = schedule_->locations[value];
  switch (location.place) {
    case Place::kNowhere:
      return nullptr;
    case Place::kKnown:
      return schedule_->values[location.index].data;
    case Place::kInput:
      return inputs_[location.index].tensor.data;
    case Place::kOutput:
      return static_cast<std::byte*>(targets_[location.index].data) + location.offset;
    case Place::kArena:
      return arena_.get() + location.offset;
  }
  return nullptr;
}

void Executor::resolve() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (schedule_->operands[i] != BP_NONE) operands_[i].data = address_of(schedule_->operands[i]);
  }
}

// Returns a value at its location in the schedule; without data if it is nowhere. The result of a step of the schedule
// is valid once the step has run.
Value Executor::value_of(uint32_t value) const {
  const Location& location = schedule_->locations[value];
  if (location.place == Place::kInput && inputs_[location.index].kind != BP_KIND_TENSOR) return inputs_[location.index];
  Tensor tensor = schedule_->values[value];
  tensor.data = address_of(value);
  std::shared_ptr<const void> holder;
  if (location.place == Place::kInput) holder = inputs_[location.index].holder;
  if (location.place == Place::kOutput) holder = targets_[location.index].holder;
  return Value::of(tensor, std::move(holder));
}

// Returns the value unchanged if it lies outside the arena, or else a copy, because the next run reuses the arena.
Value Executor::leave(Value value) const {
  auto address = reinterpret_cast<uintptr_t>(value.tensor.data);
  auto arena = reinterpret_cast<uintptr_t>(arena_.get());
  bool inside = address >= arena && address < arena + static_cast<uintptr_t>(std::max<int64_t>(arena_bytes_, 0));
  return inside && value.holder == nullptr ? own(std::move(value)) : value;
}

void Executor::run_static(const RunContext& context) {
  bool watched = context.watched();
  for (const Action& action : schedule_->actions) {
    if (watched) context.check();
    const Tensor* operands = operands_.data() + action.first_operand;
    run_step(*action.step, *action.node, {operands, action.input_count},
             {operands + action.input_count, action.output_count}, arena_.get() + action.scratch, context);
  }
}

void Executor::run_deferred(Outputs& outputs, const RunContext& context) {
  values_.resize(schedule_->values.size());
  for (uint32_t v = 0; v < values_.size(); ++v) values_[v] = value_of(v);
  // Drops the second reference to each container, so that a kernel can modify the container in place.
  for (uint32_t i = 0; i < program_.graph().input_count; ++i) {
    if (inputs_[i].kind != BP_KIND_TENSOR) inputs_[i].elements = nullptr;
  }
  uses_ = schedule_->deferred_uses;
  for (uint32_t index : schedule_->deferred) {
    context.check();
    const Call& call = program_.calls()[index];
    if (call.whole != nullptr)
      run_whole(call, context);
    else
      run_deferred_call(index, outputs, context);
  }
}

const Plan& Executor::plan_deferred(uint32_t index, std::span<const Tensor> inputs) {
  const Call& call = program_.calls()[index];
  Planned& planned = plans_[index];
  const PlanContext context = program_.plan_context();
  bool same = planned.by_extents && std::ranges::equal(planned.inputs, inputs, {}, {}, &Tensor::shape);
  if (same) return planned.plan;
  // Tries first to plan without the data of this run's inputs and results, as the Planner does before a run: a plan
  // that succeeds is valid in all runs with these extents.
  std::vector<Tensor> bare(inputs.begin(), inputs.end());
  planned.by_extents = false;  // until the plan is complete, since planning may throw
  planned.inputs.clear();
  for (size_t i = 0; i < bare.size(); ++i) {
    planned.inputs.push_back(bare[i].shape);
    uint32_t value = call.inputs[i];
    if (value != BP_NONE && schedule_->locations[value].place != Place::kKnown) bare[i].data = nullptr;
  }
  planned.plan = call.kernel->plan(context, bare);
  const bool by_extents = planned.plan.step != nullptr;
  if (!by_extents) planned.plan = call.kernel->plan(context, inputs);
  if (!planned.plan.step) {
    if (planned.plan.deferred)
      throw sdk::Error(BP_INTERNAL, "its output extents cannot be computed even from known inputs");
    throw sdk::Error(planned.plan.status, planned.plan.error);
  }
  if (context.choices != nullptr) context.choices->report(describe(*call.node), planned.plan);
  planned.plan = with_dense_operands(context, std::move(planned.plan), inputs);
  std::vector<Tensor> outputs = gather(call.outputs, schedule_->values);
  for (size_t i = 0; i < outputs.size() && i < planned.plan.shapes.size(); ++i)
    outputs[i].shape = planned.plan.shapes[i];
  if (all_empty(outputs)) planned.plan = without_work(std::move(planned.plan));
  planned.by_extents = by_extents;
  return planned.plan;
}

void Executor::run_deferred_call(uint32_t index, Outputs& outputs, const RunContext& context) {
  const Call& call = program_.calls()[index];
  at_node(*call.node, [&] { run_deferred_at(index, call, outputs, context); });
}

void Executor::run_deferred_at(uint32_t index, const Call& call, Outputs& outputs, const RunContext& context) {
  auto tensors = [&](std::span<const uint32_t> operands) {
    std::vector<Tensor> list;
    list.reserve(operands.size());
    for (uint32_t value : operands) list.push_back(value == BP_NONE ? Tensor{} : values_[value].tensor);
    return list;
  };
  std::vector<Tensor> inputs = tensors(call.inputs);
  const Plan& plan = plan_deferred(index, inputs);
  int alias = plan.step->alias();
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    uint32_t value = call.outputs[i];
    if (value == BP_NONE) continue;
    values_[value].tensor.shape = plan.shapes.at(i);
    if (alias >= 0 && i == 0) {
      const Value& source = values_[call.inputs[static_cast<size_t>(alias)]];
      values_[value].tensor.data = source.tensor.data;
      values_[value].holder = source.holder;
    } else {
      place_deferred(value, outputs);
    }
  }
  if (alias < 0) {
    Block scratch = allocate(plan.step->scratch_bytes());
    run_step(*plan.step, *call.node, inputs, tensors(call.outputs), scratch.get(), context);
  }
  for (uint32_t value : call.inputs) {
    if (value != BP_NONE && --uses_[value] == 0) values_[value].holder = nullptr;
  }
}

// Sets the address of an output of a deferred call. A graph output uses memory that the caller provides; any other
// value is allocated, and freed after its last use.
void Executor::place_deferred(uint32_t value, Outputs& outputs) {
  const bp_graph_t& graph = program_.graph();
  Tensor& tensor = values_[value].tensor;
  int64_t bytes = checked_bytes(tensor.dtype, tensor.shape, program_.plan_context().max_bytes);
  const uint32_t* end = graph.outputs + graph.output_count;
  if (const uint32_t* output = std::find(graph.outputs, end, value); output != end) {
    Outputs::Memory memory = outputs.memory(static_cast<uint32_t>(output - graph.outputs), tensor);
    tensor.data = memory.data;
    values_[value].holder = std::move(memory.holder);
    return;
  }
  std::shared_ptr<std::byte> memory = allocate(bytes);
  tensor.data = memory.get();
  values_[value].holder = std::move(memory);
}

void Executor::run_whole(const Call& call, const RunContext& context) {
  std::vector<Value> inputs(call.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint32_t value = call.inputs[i];
    if (value == BP_NONE) continue;
    if (--uses_[value] == 0)
      inputs[i] = std::move(values_[value]);
    else
      inputs[i] = values_[value];
  }
  std::vector<Value> outputs(call.outputs.size());
  uint64_t begin = context.begin_span();
  at_node(*call.node, [&] {
    if (auto failed = call.whole->run(inputs, outputs, context)) throw sdk::Error(BP_INVALID_ARGUMENT, *failed);
  });
  context.end_span(begin, *call.node);
  for (size_t i = 0; i < outputs.size(); ++i) {
    uint32_t value = call.outputs[i];
    if (value == BP_NONE) continue;
    const bp_type_t& type = program_.type_of(value);
    outputs[i] = as_declared(std::move(outputs[i]), type);
    bool fits = outputs[i].kind == type.kind;
    if (fits && type.kind == BP_KIND_TENSOR) {
      fits = outputs[i].tensor.dtype == type.dtype && program_.admits(type, outputs[i].tensor.shape.span());
    }
    if (!fits) {
      throw sdk::Error(BP_TYPE_MISMATCH,
                       describe(*call.node) + ": output " + std::to_string(i) + " is " + describe_value(outputs[i]) +
                           ", which does not fit its declared type",
                       call.node->id);
    }
    values_[value] = std::move(outputs[i]);
  }
}

}  // namespace backplane::cpu
