// SPDX-License-Identifier: Apache-2.0
#include "runtime/planner.h"

#include <algorithm>
#include <numeric>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

namespace {

// Larger results are computed in each run rather than kept.
constexpr int64_t kFoldLimit = int64_t{64} << 20;
constexpr int64_t kMaxBytes = int64_t{1} << 46;

}  // namespace

std::string describe(const bp_node_t& node) {
  std::string text(node.op_type.data, node.op_type.size);
  if (node.name.size != 0) return text + " '" + std::string(node.name.data, node.name.size) + "'";
  return text + " #" + std::to_string(node.id);
}

int64_t checked_bytes(bp_dtype_t dtype, const Shape& shape, const bp_node_t& node) {
  // An empty tensor may have other extents of any size; for all others each partial product must stay in bounds.
  int64_t elements = 1;
  bool beyond = false;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) {
      throw sdk::Error(BP_INVALID_MODEL, describe(node) + ": an output extent is " + std::to_string(extent), node.id);
    }
    empty |= extent == 0;
    beyond = beyond || __builtin_mul_overflow(elements, extent, &elements) || elements > kMaxBytes / 16;
  }
  if (empty) return 0;
  if (beyond)
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, describe(node) + ": an output would be larger than all memory", node.id);
  return bytes_of(dtype, elements);
}

bool misaligned(const Tensor& tensor) {
  const auto size = static_cast<uintptr_t>(std::clamp<int64_t>(bytes_of(tensor.dtype, 1), 1, 8));
  return reinterpret_cast<uintptr_t>(tensor.data) % size != 0;
}

std::vector<Tensor> gather(std::span<const uint32_t> operands, std::span<const Tensor> values) {
  std::vector<Tensor> tensors;
  tensors.reserve(operands.size());
  for (uint32_t value : operands) tensors.push_back(value == BP_NONE ? Tensor{} : values[value]);
  return tensors;
}

Planner::Planner(std::span<const Call> calls, std::span<const Tensor> values, const std::vector<bool>& known)
    : values(values.begin(), values.end()), shaped(known), known(known), calls_(calls) {}

void Planner::set_extents(uint32_t value, const Shape& shape) {
  values[value].shape = shape;
  shaped[value] = true;
}

void Planner::walk() {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i].folded && !plan(i)) later.push_back(i);
  }
}

// False: the call has to wait for a value.
bool Planner::plan(uint32_t index) {
  const Call& call = calls_[index];
  bool inputs_known = true;
  for (uint32_t value : call.inputs) {
    if (value == BP_NONE) continue;
    if (!shaped[value]) return false;
    inputs_known = inputs_known && known[value];
  }
  std::vector<Tensor> inputs = gather(call.inputs, values);
  Plan plan = ask(call, inputs);
  if (plan.later) return false;
  if (!plan.step) throw sdk::Error(BP_TYPE_MISMATCH, describe(*call.node) + ": " + plan.error, call.node->id);

  std::vector<Tensor> outputs = gather(call.outputs, values);
  int64_t output_bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    if (i >= plan.shapes.size()) {
      throw sdk::Error(BP_INVALID_MODEL, describe(*call.node) + ": the operator makes no output " + std::to_string(i),
                       call.node->id);
    }
    outputs[i].shape = plan.shapes[i];
    output_bytes += checked_bytes(outputs[i].dtype, outputs[i].shape, *call.node);
    set_extents(call.outputs[i], plan.shapes[i]);
  }

  bool computable = call.reads_extents_only || inputs_known;
  if (computable && call.may_fold && plan.step->pure() && output_bytes <= kFoldLimit) {
    plan = with_dense_operands(std::move(plan), inputs);
    fold(index, *plan.step, inputs, outputs);
    return true;
  }
  std::vector<uint32_t> operands(call.inputs.begin(), call.inputs.end());
  plan.takes.resize(operands.size(), Format::kDense);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] != BP_NONE) operands[i] = in_format(operands[i], plan.takes[i], index);
  }
  if (plan.packed >= 0 && on_packed) on_packed(call.inputs[static_cast<size_t>(plan.packed)]);
  if (plan.gives != Format::kDense) values[call.outputs[0]].format = plan.gives;
  add_step(index, std::move(plan.step), operands, call.outputs);
  return true;
}

// The kernel's plan. Known inputs are aligned for it, but for those that it packs or reads as bytes.
Plan Planner::ask(const Call& call, std::vector<Tensor>& inputs) {
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
  Plan plan = kernel.plan(inputs);
  if (align([&](size_t i) { return plan.packed == static_cast<int>(i) || kernel.reads_bytes(i); }))
    plan = kernel.plan(inputs);
  return plan;
}

void Planner::add_step(uint32_t call, std::unique_ptr<Step> step, std::span<const uint32_t> inputs,
                       std::span<const uint32_t> outputs) {
  steps.push_back({call, std::move(step), static_cast<uint32_t>(operands.size()), static_cast<uint32_t>(inputs.size()),
                   static_cast<uint32_t>(outputs.size())});
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  operands.insert(operands.end(), outputs.begin(), outputs.end());
}

// The value in a format: itself, or a copy that a step before `call` makes once.
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
  add_step(call, make_reorder(copy.shape, values[value].format, format), {&value, 1}, {&twin, 1});
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
  for (uint32_t index : later) {
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

void Planner::fold(uint32_t index, const Step& step, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Call& call = calls_[index];
  bool alias = step.alias() >= 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    if (alias && i == 0) {
      outputs[i].data = inputs[static_cast<size_t>(step.alias())].data;
      outputs[i].passing = inputs[static_cast<size_t>(step.alias())].passing;
    } else {
      int64_t bytes = bytes_of(outputs[i].dtype, outputs[i].shape.elements());
      blocks.push_back(allocate_pages(bytes));
      block_bytes += bytes;
      outputs[i].data = blocks.back().get();
      outputs[i].passing = passing;
    }
  }
  if (!alias) {
    Block scratch = allocate_pages(step.scratch_bytes());
    if (auto failed = step.run(inputs, outputs, scratch.get())) {
      throw sdk::Error(BP_INVALID_MODEL, describe(*call.node) + ": " + *failed, call.node->id);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].present()) continue;
    values[call.outputs[i]].data = outputs[i].data;
    values[call.outputs[i]].passing = outputs[i].passing;
    known[call.outputs[i]] = true;
  }
  folded.push_back(index);
}

}  // namespace backplane::cpu
