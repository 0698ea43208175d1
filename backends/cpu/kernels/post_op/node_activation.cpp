// SPDX-License-Identifier: Apache-2.0
#include "kernels/post_op/node_activation.h"

namespace backplane::cpu {

namespace {

struct Name {
  std::string_view name;
  Activation activation;
};
constexpr Name kNames[] = {
    {"Relu", {Activation::kRelu}},       {"Tanh", {Activation::kTanh}},
    {"Sigmoid", {Activation::kSigmoid}}, {"LeakyRelu", {Activation::kLeakyRelu, 0.01f}},
    {"Clip", {Activation::kClip}},       {"HardSigmoid", {Activation::kHardSigmoid, 0.2f, 0.5f}},
};

}  // namespace

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
  const bool has_bounds = node.floats("activation_params").size() >= 2 ||
                          (node.find("activation_alpha") != nullptr && node.find("activation_beta") != nullptr);
  if (wanted == "Clip" && !has_bounds)
    return no(BP_REASON_ATTRIBUTE,
              "activation Clip needs its two bounds, in activation_params or in activation_alpha and "
              "activation_beta");
  if (wanted.empty() || activation_of(node)) return yes();
  return no(BP_REASON_ATTRIBUTE, "activation '" + wanted + "' is not supported");
}

}  // namespace backplane::cpu
