// SPDX-License-Identifier: Apache-2.0
#include "runtime/planner.h"

#include <algorithm>
#include <numeric>

#include "backplane/sdk/fence.hpp"
#include "runtime/choices.h"
#include "runtime/dense_plan.h"
#include "runtime/tables.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

// A node is not folded but computed in each run if its outputs have more bytes than this in total.
constexpr int64_t kFoldLimit = int64_t{64} << 20;
constexpr int64_t kFoldScratch = int64_t{256} << 20;  // or if it needs more scratch memory than this

using Clock = std::chrono::steady_clock;

// Thrown when folding exceeds its time allowance.
struct TooLong {};

// Throws when the time allowance for folding is used up, or when the watch that was active before throws.
class FoldWatch final : public Watch {
 public:
  explicit FoldWatch(std::chrono::nanoseconds time) : outer_(thread_state().watch), end_(Clock::now() + time) {}
  void check() const override {
    if (outer_ != nullptr) outer_->check();
    if (Clock::now() >= end_) throw TooLong();
  }

 private:
  const Watch* outer_;
  Clock::time_point end_;
};

// Returns body(). If body takes longer than the time left in the allowance, stops it and returns false.
template <class Body>
bool within(FoldAllowance& allowance, const Body& body) {
  const auto begin = Clock::now();
  const FoldWatch watch(allowance.time);
  bool done = false;
  try {
    const UseWatch use(&watch);
    done = body();
  } catch (const TooLong&) {
    allowance.time = {};
    return false;
  }
  allowance.time -= std::min<std::chrono::nanoseconds>(allowance.time, Clock::now() - begin);
  return done;
}

class NoWork final : public Step {
 public:
  explicit NoWork(bool pure) : pure_(pure) {}
  std::optional<std::string> run(std::span<const Tensor>, std::span<const Tensor>, void*) const override {
    return std::nullopt;
  }
  bool pure() const override { return pure_; }

 private:
  bool pure_;
};

}  // namespace

int64_t checked_bytes(bp_dtype_t dtype, const Shape& shape, int64_t max_bytes) {
  for (int64_t extent : shape) {
    if (extent < 0) throw sdk::Error(BP_INVALID_MODEL, "an output has the negative extent " + std::to_string(extent));
  }
  const int64_t bytes = countable(shape) ? bytes_of(dtype, shape.elements()) : INT64_MAX;
  if (bytes > max_bytes) {
    throw sdk::Error(BP_RESOURCE_EXHAUSTED,
                     "an output of extents " + to_string(shape) + " needs " +
                         (bytes == INT64_MAX ? "more memory than can be addressed"
                                             : std::to_string(bytes) + " bytes; the limit is " +
                                                   std::to_string(max_bytes) + " (option cpu.max_bytes)"));
  }
  return bytes;
}

bool all_empty(std::span<const Tensor> outputs) {
  bool any = false;
  for (const Tensor& output : outputs) {
    if (!output.present()) continue;
    if (output.shape.elements() != 0) return false;
    any = true;
  }
  return any;
}

Plan without_work(Plan plan) {
  if (plan.step->alias() < 0) plan.step = std::make_unique<NoWork>(plan.step->pure());
  return plan;
}

bool misaligned(const Tensor& tensor) {
  const auto size = static_cast<uintptr_t>(std::clamp<int64_t>(bytes_of(tensor.dtype, 1), 1, 8));
  return reinterpret_cast<uintptr_t>(tensor.data) % size != 0;
}

std::vector<Tensor> gather(std::span<const uint32_t> operands, std::span<const Tensor> values) {
  std::vector<Tensor> tensors;
  tensors.reserve(operands.size());
  gather(operands, values, tensors);
  return tensors;
}

void gather(std::span<const uint32_t> operands, std::span<const Tensor> values, std::vector<Tensor>& out_tensors) {
  out_tensors.clear();
  for (uint32_t value : operands) out_tensors.push_back(value == BP_NONE ? Tensor{} : values[value]);
}

Planner::Planner(const PlanContext& context, std::span<const Call> calls, std::span<const Tensor> values,
                 const std::vector<bool>& known, FoldAllowance& allowance)
    : values(values.begin(), values.end()),
      shaped(known),
      known(known),
      context_(context),
      calls_(calls),
      allowance_(allowance) {
  context_.tables = &tables_;
}

void Planner::set_extents(uint32_t value, const Shape& shape) {
  if (!countable(shape)) throw_uncountable(shape);
  values[value].shape = shape;
  shaped[value] = true;
}

void Planner::walk() {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i].skipped && !plan(i)) deferred.push_back(i);
  }
}

// Returns false if the call is deferred: it needs a value or extents that are not known yet, or takes too long to plan.
bool Planner::plan(uint32_t index) {
  const Call& call = calls_[index];
  return at_node(*call.node, [&] { return plan_at(index, call); });
}

bool Planner::plan_at(uint32_t index, const Call& call) {
  bool inputs_known = true;
  for (uint32_t value : call.inputs) {
    if (value == BP_NONE) continue;
    if (!shaped[value]) return false;
    inputs_known = inputs_known && known[value];
  }
  std::vector<Tensor>& inputs = inputs_;
  gather(call.inputs, values, inputs);
  Plan plan;
  if (call.costly_to_plan) return false;
  // Where extents follow from values, planning from known inputs may do most of the work. The time for it counts as
  // folding.
  if (!inputs_known || !call.may_fold) {
    plan = plan_kernel(call, inputs);
  } else if (!within(allowance_, [&] {
               plan = plan_kernel(call, inputs);
               return true;
             })) {
    costly_to_plan.push_back(index);
    return false;
  }
  if (plan.deferred) return false;
  if (!plan.step) throw sdk::Error(plan.status, plan.error);

  std::vector<Tensor>& outputs = outputs_;
  gather(call.outputs, values, outputs);
  int64_t output_bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    if (i >= plan.shapes.size())
      throw sdk::Error(BP_INVALID_MODEL, "the operator does not compute output " + std::to_string(i));
    outputs[i].shape = plan.shapes[i];
    output_bytes += std::min(checked_bytes(outputs[i].dtype, outputs[i].shape, context_.max_bytes), kFoldLimit + 1);
    set_extents(call.outputs[i], plan.shapes[i]);
  }
  if (all_empty(outputs)) plan = without_work(std::move(plan));

  bool computable = (call.row->facts & kReadsExtentsOnly) != 0 || inputs_known;
  if (computable && call.may_fold && plan.step->pure() && output_bytes <= std::min(kFoldLimit, allowance_.bytes) &&
      plan.step->scratch_bytes() <= kFoldScratch) {
    Plan dense = with_dense_operands(context_, std::move(plan), inputs);
    if (within(allowance_, [&] { return fold(index, *dense.step, inputs, outputs); })) return true;
    costly.push_back(index);
    plan = std::move(dense);
  }
  call_operands_.assign(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < call_operands_.size(); ++i) {
    const Format format = i < plan.input_formats.size() ? plan.input_formats[i] : Format::kDense;
    if (call_operands_[i] != BP_NONE) call_operands_[i] = in_format(call_operands_[i], format, index);
  }
  if (plan.packed >= 0 && on_packed) on_packed(call.inputs[static_cast<size_t>(plan.packed)]);
  if (plan.output_format != Format::kDense) values[call.outputs[0]].format = plan.output_format;
  add_step(index, std::move(plan.step), call_operands_, call.outputs);
  return true;
}

// Returns the kernel's plan. Copies unaligned known inputs to aligned memory, except those that the kernel packs or
// reads as bytes.
Plan Planner::plan_kernel(const Call& call, std::vector<Tensor>& inputs) {
  auto align = [&](auto&& leave) {
    bool moved = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!misaligned(inputs[i]) || leave(i)) continue;
      inputs[i].data = values[call.inputs[i]].data = aligned(call.inputs[i]);
      moved = true;
    }
    return moved;
  };
  const Kernel& kernel = *call.kernel;
  align([&](size_t i) { return kernel.packs(i) || kernel.reads_bytes(i); });
  Plan plan = kernel.plan(context_, inputs);
  if (align([&](size_t i) { return plan.packed == static_cast<int>(i) || kernel.reads_bytes(i); }))
    plan = kernel.plan(context_, inputs);
  if (context_.choices != nullptr) context_.choices->report(describe(*call.node), plan);
  return plan;
}

void Planner::add_step(uint32_t call, std::unique_ptr<Step> step, std::span<const uint32_t> inputs,
                       std::span<const uint32_t> outputs) {
  steps.push_back({call, std::move(step), static_cast<uint32_t>(operands.size()), static_cast<uint32_t>(inputs.size()),
                   static_cast<uint32_t>(outputs.size())});
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  operands.insert(operands.end(), outputs.begin(), outputs.end());
}

// Returns the index of `value` in `format`: `value` itself, or a copy from a reorder step that is added for `call`. All
// readers share the copy.
uint32_t Planner::in_format(uint32_t value, Format format, uint32_t call) {
  if (values[value].format == format) return value;
  twins_.resize(values.size(), BP_NONE);
  if (twins_[value] != BP_NONE) return twins_[value];
  auto twin = static_cast<uint32_t>(values.size());
  Tensor copy = values[value];
  copy.format = format;
  copy.data = nullptr;
  values.push_back(copy);
  shaped.push_back(true);
  known.push_back(false);
  twins_.push_back(value);
  twins_[value] = twin;
  add_step(call, context_.make_reorder(copy.shape, values[value].format, format), {&value, 1}, {&twin, 1});
  return twin;
}

void Planner::make_dense(std::span<const uint32_t> outputs) {
  std::vector<std::pair<uint32_t, uint32_t>> swapped;
  auto require = [&](uint32_t value, uint32_t call) {
    if (value == BP_NONE || values[value].format == Format::kDense) return;
    uint32_t twin = in_format(value, Format::kDense, call);
    std::swap(values[value], values[twin]);
    swapped.emplace_back(value, twin);
  };
  for (uint32_t value : outputs) require(value, steps.empty() ? 0 : steps.back().call);
  for (uint32_t index : deferred) {
    for (uint32_t value : calls_[index].inputs) require(value, index);
  }
  if (swapped.empty()) return;
  std::vector<uint32_t> names(values.size());
  std::iota(names.begin(), names.end(), 0u);
  for (auto [value, twin] : swapped) std::swap(names[value], names[twin]);
  for (uint32_t& operand : operands) {
    if (operand != BP_NONE) operand = names[operand];
  }
}

// Outputs become known only if the step succeeds; if it throws, their memory is released.
bool Planner::fold(uint32_t index, const Step& step, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Call& call = calls_[index];
  const bool alias = step.alias() >= 0;
  std::vector<Block> own;
  int64_t own_bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    if (alias && i == 0) {
      outputs[i].data = inputs[static_cast<size_t>(step.alias())].data;
      outputs[i].transient = inputs[static_cast<size_t>(step.alias())].transient;
    } else {
      int64_t bytes = bytes_of(outputs[i].dtype, outputs[i].shape.elements());
      own.push_back(allocate_pages(bytes));
      own_bytes += bytes;
      outputs[i].data = own.back().get();
      outputs[i].transient = transient;
    }
  }
  if (!alias) {
    Block scratch = allocate_pages(step.scratch_bytes());
    if (auto failed = step.run(inputs, outputs, scratch.get())) throw sdk::Error(BP_INVALID_MODEL, *failed);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    values[call.outputs[i]].data = outputs[i].data;
    values[call.outputs[i]].transient = outputs[i].transient;
    known[call.outputs[i]] = true;
  }
  std::move(own.begin(), own.end(), std::back_inserter(blocks));
  block_bytes += own_bytes;
  allowance_.bytes -= own_bytes;
  folded.push_back(index);
  return true;
}

}  // namespace backplane::cpu
