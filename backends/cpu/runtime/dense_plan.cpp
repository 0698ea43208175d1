// SPDX-License-Identifier: Apache-2.0
#include "runtime/dense_plan.h"

#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

// Wraps a step that needs other formats, for dense operands: reorders the inputs into scratch memory for the step, and
// the step's result from scratch memory.
class DenseStep final : public Step {
 public:
  DenseStep(Plan plan, std::span<const Tensor> inputs, MakeReorder make_reorder)
      : make_reorder_(make_reorder), step_(std::move(plan.step)) {
    scratch_ = align_up(step_->scratch_bytes());
    plan.input_formats.resize(inputs.size(), Format::kDense);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_.push_back(reordered(inputs[i].shape, Format::kDense, plan.input_formats[i]));
    }
    result_ = reordered(plan.shapes[0], plan.output_format, Format::kDense);
  }
  int64_t scratch_bytes() const override { return scratch_; }

  std::optional<std::string> run(std::span<const Tensor> in, std::span<const Tensor> out,
                                 void* scratch) const override {
    auto* memory = static_cast<std::byte*>(scratch);
    std::vector<Tensor> inputs(in.begin(), in.end());
    std::vector<Tensor> outputs(out.begin(), out.end());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs_[i].step) continue;
      inputs[i].data = memory + inputs_[i].offset;
      inputs[i].format = inputs_[i].format;
      if (auto failed = inputs_[i].step->run({&in[i], 1}, {&inputs[i], 1}, nullptr)) return failed;
    }
    if (result_.step) {
      outputs[0].data = memory + result_.offset;
      outputs[0].format = result_.format;
    }
    if (auto failed = step_->run(inputs, outputs, scratch)) return failed;
    return result_.step ? result_.step->run({outputs.data(), 1}, {out.data(), 1}, nullptr) : std::nullopt;
  }

 private:
  struct Operand {
    std::unique_ptr<Step> step;      // null: no reorder is needed
    Format format = Format::kDense;  // format that the wrapped step reads or writes
    int64_t offset = 0;
  };
  Operand reordered(const Shape& shape, Format from, Format to) {
    if (from == to) return {};
    const Format needed = from == Format::kDense ? to : from;
    Operand operand{make_reorder_(shape, from, to), needed, scratch_};
    scratch_ += align_up(stored_elements(needed, shape) * static_cast<int64_t>(sizeof(float)));
    return operand;
  }

  MakeReorder make_reorder_;
  std::unique_ptr<Step> step_;
  int64_t scratch_ = 0;
  std::vector<Operand> inputs_;
  Operand result_;
};

}  // namespace

Plan with_dense_operands(const PlanContext& context, Plan plan, std::span<const Tensor> inputs) {
  if (!plan.step || (plan.input_formats.empty() && plan.output_format == Format::kDense)) return plan;
  Plan dense;
  dense.shapes = plan.shapes;
  dense.step = std::make_unique<DenseStep>(std::move(plan), inputs, context.make_reorder);
  return dense;
}

}  // namespace backplane::cpu
