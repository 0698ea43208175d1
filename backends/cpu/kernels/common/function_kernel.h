// SPDX-License-Identifier: Apache-2.0
// Functions that create kernels and steps from lambdas, whose captures hold the operator's state.
//
//   return make_kernel([axis](Tensors inputs) -> Plan {  // or (const PlanContext& context, Tensors inputs)
//     …
//     return make_plan({shape}, [=](Tensors inputs, Tensors outputs) { … });
//   });
#pragma once

#include <utility>

#include "runtime/parallel.h"
#include "runtime/row.h"

namespace backplane::cpu {

using Tensors = std::span<const Tensor>;

// The return values of the functions of Step (runtime/kernel.h) with the same names.
struct StepTraits {
  int inplace = -1;
  int alias = -1;
  int64_t scratch_bytes = 0;
  bool pure = true;
  bool concat_in_place = false;
};

template <class Run>
class FunctionStep final : public Step {
 public:
  FunctionStep(Run run, StepTraits traits) : run_(std::move(run)), traits_(traits) {}
  // `run_` takes (inputs, outputs) or (inputs, outputs, scratch) and returns nothing or an optional error message.
  std::optional<std::string> run(Tensors inputs, Tensors outputs, void* scratch) const override {
    auto call = [&] {
      if constexpr (std::is_invocable_v<const Run&, Tensors, Tensors>)
        return run_(inputs, outputs);
      else
        return run_(inputs, outputs, scratch);
    };
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return std::nullopt;
    } else {
      return call();
    }
  }
  int64_t scratch_bytes() const override { return traits_.scratch_bytes; }
  int inplace() const override { return traits_.inplace; }
  int alias() const override { return traits_.alias; }
  bool pure() const override { return traits_.pure; }
  bool concat_in_place() const override { return traits_.concat_in_place; }

 private:
  Run run_;
  StepTraits traits_;
};

// Returns a plan whose step calls `run`, or a failed plan if an output is too large for memory.
template <class Run>
Plan make_plan(std::vector<Shape> shapes, Run run, StepTraits traits = {}) {
  for (const Shape& shape : shapes)
    if (!countable(shape)) return fail("an output of extents " + to_string(shape) + " is too large for memory");
  Plan plan;
  plan.step = std::make_unique<FunctionStep<Run>>(std::move(run), traits);
  plan.shapes = std::move(shapes);
  return plan;
}

// For elementwise steps, which may process elements in any order: input 0 is read in its current format and the output
// is written in the same format. Other inputs are dense.
inline void keep_format(Plan& plan, Tensors inputs) {
  plan.input_formats.assign(inputs.size(), Format::kDense);
  plan.input_formats[0] = plan.output_format = inputs[0].format;
}

// The input that a kernel's steps read as bytes, which need not be aligned; -1: none.
struct ReadsBytes {
  int input = -1;
};

template <class PlanFunction>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(ReadsBytes bytes, PlanFunction plan) : bytes_(bytes), plan_(std::move(plan)) {}
  Plan plan(const PlanContext& context, Tensors inputs) const override {
    if constexpr (std::is_invocable_v<const PlanFunction&, const PlanContext&, Tensors>)
      return plan_(context, inputs);
    else
      return plan_(inputs);
  }
  bool reads_bytes(size_t input) const override { return static_cast<int>(input) == bytes_.input; }

 private:
  ReadsBytes bytes_;
  PlanFunction plan_;
};

template <class PlanFunction>
std::unique_ptr<Kernel> make_kernel(ReadsBytes bytes, PlanFunction plan) {
  return std::make_unique<FunctionKernel<PlanFunction>>(bytes, std::move(plan));
}

template <class PlanFunction>
std::unique_ptr<Kernel> make_kernel(PlanFunction plan) {
  return make_kernel(ReadsBytes{}, std::move(plan));
}

}  // namespace backplane::cpu
