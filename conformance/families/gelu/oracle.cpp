// SPDX-License-Identifier: Apache-2.0
// Oracles of com.microsoft's variants of GELU: those of ONNX's Gelu and Swish, on the sum of the input and a bias.
#include "judge/oracle.h"

namespace backplane::conform {
namespace {

// Computes the operator of ONNX on the sum of the input and the bias of its last axis, if the call has one. A device
// may round the sum, so it is an intermediate result of two terms (Rule::kSmooth).
References of_sum(const Call& call, std::string_view op, const Attributes& attributes) {
  Array x = call.in(0);
  if (call.has(1)) {
    require(x.rank() > 0 && call.in(1).dtype == x.dtype, "X is a scalar, or X and the bias have different types");
    const std::vector<double>& bias = call.vector(1, x.extents.back());
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += bias[i % bias.size()];
  }
  References results = compute(op, Call({&x}, attributes, 1));
  if (call.has(1)) results.at(0).rule = Rule::smooth(2);
  return results;
}

References by_erf(const Call& call) {
  return of_sum(call, "Gelu", {{"approximate", std::string("none")}});
}
References bias_gelu(const Call& call) {
  require(call.has(1), "the bias is missing");
  return by_erf(call);
}
References fast_gelu(const Call& call) {
  return of_sum(call, "Gelu", {{"approximate", std::string("tanh")}});
}
References quick_gelu(const Call& call) {
  return of_sum(call, "Swish", {{"alpha", static_cast<float>(call.real("alpha", 1.702f))}});
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"com.microsoft.Gelu", {1}, by_erf, kMicrosoft},
    {"BiasGelu", {1}, bias_gelu, kMicrosoft},
    {"FastGelu", {1}, fast_gelu, kMicrosoft},
    {"QuickGelu", {1}, quick_gelu, kMicrosoft},
};

}  // namespace

std::span<const Operator> gelu_operators() {
  return kOperators;
}

}  // namespace backplane::conform
