// SPDX-License-Identifier: Apache-2.0
// com.microsoft FusedGemm: Gemm followed by an activation.
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/matmul/gemm.h"
#include "kernels/post_op/activation.h"
#include "kernels/post_op/node_activation.h"

namespace backplane::cpu {

namespace {

constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);

class ActivatedStep final : public Step {
 public:
  ActivatedStep(std::unique_ptr<Step> inner, const Activation& activation)
      : inner_(std::move(inner)), activation_(activation) {}
  std::optional<std::string> run(Tensors inputs, Tensors outputs, void* scratch) const override {
    if (auto failed = inner_->run(inputs, outputs, scratch)) return failed;
    parallel(outputs[0].shape.elements(), kMathGrain,
             [&](int64_t begin, int64_t end) { activate(activation_, outputs[0].as<float>() + begin, end - begin); });
    return std::nullopt;
  }
  int64_t scratch_bytes() const override { return inner_->scratch_bytes(); }

 private:
  std::unique_ptr<Step> inner_;
  Activation activation_;
};

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloat, kFloat, kFloat}); !v) return v;
  return supports_activation(node);
}

std::unique_ptr<Kernel> create(const Node& node) {
  std::shared_ptr<Kernel> gemm = create_gemm(node);
  return make_kernel([gemm, activation = activation_of(node)](const PlanContext& context, Tensors in) {
    Plan plan = gemm->plan(context, in);
    if (plan.step && activation) plan.step = std::make_unique<ActivatedStep>(std::move(plan.step), *activation);
    return plan;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> fused_gemm_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "FusedGemm", 1, supports, create}.in_fp32(0b010).with(kMultipliesInBf16),
  };
  return kRows;
}

}  // namespace backplane::cpu
