// SPDX-License-Identifier: Apache-2.0
// com.microsoft FusedConv and FusedGemm: ONNX's operators with a sum or an activation behind them.
#include "ops/activation.h"
#include "ops/function_kernel.h"
#include "ops/rows.h"
#include "ops/support.h"
#include "ops/window.h"
#include "runtime/post_op.h"

namespace backplane::cpu {

namespace {

constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);

struct Name {
  std::string_view name;
  Activation activation;
};
constexpr Name kNames[] = {
    {"Relu", {Activation::kRelu}},       {"Tanh", {Activation::kTanh}},
    {"Sigmoid", {Activation::kSigmoid}}, {"LeakyRelu", {Activation::kLeakyRelu, 0.01f}},
    {"Clip", {Activation::kClip}},       {"HardSigmoid", {Activation::kHardSigmoid, 0.2f, 0.5f}},
};

// What the node's attributes ask for; nothing where there is none.
std::optional<Activation> activation_of(const Node& node) {
  const std::string wanted = node.attr("activation", "");
  for (const Name& known : kNames) {
    if (known.name != wanted) continue;
    Activation activation = known.activation;
    const std::vector<float> parameters = node.floats("activation_params");
    activation.alpha = node.attr("activation_alpha", parameters.empty() ? activation.alpha : parameters[0]);
    activation.beta = node.attr("activation_beta", parameters.size() < 2 ? activation.beta : parameters[1]);
    return activation;
  }
  return std::nullopt;
}

Verdict supports_activation(const Node& node) {
  const std::string wanted = node.attr("activation", "");
  if (wanted.empty() || activation_of(node)) return yes();
  return no(BP_REASON_ATTRIBUTE, "activation is '" + wanted + "'");
}

// ---- FusedConv: X, W, bias, and what is added to the result before the activation

Verdict supports_conv(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloat, kFloat, kFloat, kFloat}); !v) return v;
  if (Verdict v = supports_activation(node); !v) return v;
  return check_window(node);
}

std::unique_ptr<Kernel> create_conv(const Node& node) {
  std::shared_ptr<Kernel> conv = conv_rows()[0].create(node);
  const bool sums = node.has_input(3);
  if (sums) conv->append(PostOp{PostOp::kAdd, {}, {}, {}});
  if (const auto activation = activation_of(node)) conv->append(PostOp{PostOp::kActivation, {}, {}, *activation});
  return make_kernel([conv, sums](Tensors in) {
    Plan plan = conv->plan(in);
    if (plan.step && sums && !(in[3].shape == plan.shapes[0]))
      return fail("Z " + to_string(in[3].shape) + " does not have the result's extents " + to_string(plan.shapes[0]));
    return plan;
  });
}

// ---- FusedGemm

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

Verdict supports_gemm(const Node& node) {
  if (Verdict v = accepts(node, 2, {kFloat, kFloat, kFloat}); !v) return v;
  return supports_activation(node);
}

std::unique_ptr<Kernel> create_gemm(const Node& node) {
  std::shared_ptr<Kernel> gemm = gemm_rows()[0].create(node);
  return make_kernel([gemm, activation = activation_of(node)](Tensors in) {
    Plan plan = gemm->plan(in);
    if (plan.step && activation) plan.step = std::make_unique<ActivatedStep>(std::move(plan.step), *activation);
    return plan;
  });
}

constexpr Row kRows[] = {
    {"com.microsoft", "FusedConv", 1, supports_conv, create_conv},
    {"com.microsoft", "FusedGemm", 1, supports_gemm, create_gemm},
};

}  // namespace

std::span<const Row> fused_rows() {
  return kRows;
}

}  // namespace backplane::cpu
