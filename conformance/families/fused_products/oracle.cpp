// SPDX-License-Identifier: Apache-2.0
// Oracles of com.microsoft's products that include other operations: scaling and transposition, activations,
// quantization. They use the oracles of ONNX's products.
#include <algorithm>

#include "judge/dynamic_quantization.h"

namespace backplane::conform {
namespace {

const Attributes kNoAttributes;

// A matrix product whose factors may be transposed, times alpha.
References fused_matmul(const Call& call) {
  require_known(call.integer("transBatchA") == 0 && call.integer("transBatchB") == 0,
                "the oracle does not transpose batches");
  const auto factor = [&](size_t slot, std::string_view attribute) {
    const Array& x = call.in(slot, 1);
    if (call.integer(attribute) == 0 || x.rank() < 2) return x;
    const auto swapped = [](Index at) {
      std::swap(at[at.size() - 1], at[at.size() - 2]);
      return at;
    };
    Array result(x.dtype, swapped(x.extents));
    for_each_index(x.extents, [&](const Index& at) { result.at(swapped(at)) = x.at(at); });
    return result;
  };
  const Array a = factor(0, "transA"), b = factor(1, "transB");
  References results = compute("MatMul", Call({&a, &b}, kNoAttributes, 1));
  const double alpha = call.real("alpha", 1);
  for (double& x : results.at(0).value.values) x *= alpha;
  for (double& x : results.at(0).scale) x *= std::fabs(alpha);
  return results;
}

// The activation that an attribute names, with up to two parameters.
Tracked activated(std::string_view name, double alpha, double beta, const Tracked& x) {
  const auto clamped = [](const Tracked& y, double low, double high) {
    return Tracked(std::fmax(low, std::fmin(high, y.value)), y.error);
  };
  if (name == "Relu") return clamped(x, 0, HUGE_VAL);
  if (name == "LeakyRelu") return x.value < 0 ? Tracked(alpha) * x : x;
  if (name == "Clip") return clamped(x, alpha, beta);
  if (name == "HardSigmoid") return clamped(Tracked(alpha) * x + Tracked(beta), 0, 1);
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return sigmoid(x);
  require_known(name.empty(), "the oracle does not know the activation");
  return x;
}
double default_alpha(std::string_view name) {
  return name == "LeakyRelu" ? 0.01f : name == "HardSigmoid" ? 0.2f : 0;
}
double default_beta(std::string_view name) {
  return name == "HardSigmoid" ? 0.5 : 0;
}

// The elements of a product, with the errors that its bound allows.
std::vector<Tracked> tracked(const Reference& product) {
  const FloatType& type = float_type(product.value.dtype);
  std::vector<Tracked> all;
  for (size_t i = 0; i < product.value.values.size(); ++i) {
    const double value = product.value.values[i];
    all.emplace_back(value, bound(product.rule, type, value, product.scale[i]) / (type.epsilon() / 2));
  }
  return all;
}

References fused_gemm(const Call& call) {
  const Reference product = compute("Gemm", call).at(0);
  const std::string_view name = call.text("activation");
  if (name.empty()) return {product};
  require_known(name != "Clip", "the oracle does not know the names of the bounds of Clip");
  const double alpha = call.real("activation_alpha", default_alpha(name)),
               beta = call.real("activation_beta", default_beta(name));
  std::vector<Tracked> all = tracked(product);
  for (Tracked& x : all) x = activated(name, alpha, beta, x);
  return {tracked_reference(product.value.dtype, product.value.extents, all)};
}

// The activation of the sum of a Conv and of Z.
References fused_conv(const Call& call) {
  std::vector<const Array*> inputs = {&call.in(0, 3), &call.in(1, 3)};
  if (call.has(2)) inputs.push_back(&call.in(2));
  const Reference product = compute("Conv", Call(inputs, call.attributes(), 1)).at(0);
  const std::string_view name = call.text("activation");
  if (name.empty() && !call.has(3)) return {product};
  const std::vector<double> parameters = call.reals("activation_params");
  require(name != "Clip" || parameters.size() == 2, "activation_params does not have the two bounds of Clip");
  const double alpha = parameters.empty() ? default_alpha(name) : parameters[0],
               beta = parameters.size() < 2 ? default_beta(name) : parameters[1];
  require(!call.has(3) || (call.in(3).extents == product.value.extents && call.in(3).dtype == product.value.dtype),
          "Z does not have the shape and type of the result");
  std::vector<Tracked> all = tracked(product);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = activated(name, alpha, beta, call.has(3) ? all[i] + Tracked(call.in(3).values[i]) : all[i]);
  return {tracked_reference(product.value.dtype, product.value.extents, all)};
}

// The element of a scale or zero point that has one for all columns, or one for each.
double of_column(const Array& all, int64_t column) {
  return all.count() == 1 ? all.values[0] : all.at({column});
}

// The integer product of A and B, each minus its zero point, times both scales, plus the bias.
References matmul_integer_to_float(const Call& call) {
  const Array &scale_a = call.in(2), &scale_b = call.in(3);
  require(is_float(scale_a.dtype) && scale_a.dtype == scale_b.dtype, "the scales are not of one floating-point type");
  const auto optional = [&](size_t slot) { return call.has(slot) ? &call.in(slot) : nullptr; };
  require_known(scale_a.count() == 1 && (!call.has(4) || call.in(4).count() == 1),
                "the oracle supports one scale and zero point of A");
  const std::vector<const Array*> inputs = {&call.in(0), &call.in(1), optional(4), optional(5)};
  const Array product = compute("MatMulInteger", Call(inputs, kNoAttributes, 1)).at(0).value;
  std::vector<Tracked> all;
  for_each_index(product.extents, [&](const Index& at) {
    const Tracked scale = Tracked(scale_a.values[0]) * Tracked(of_column(scale_b, at.back()));
    all.push_back(Tracked(product.at(at)) * scale);
    if (call.has(6))
      all.back() = all.back() + Tracked(call.vector(6, product.extents.back())[static_cast<size_t>(at.back())]);
  });
  return {tracked_reference(scale_a.dtype, product.extents, all)};
}

// The product of A, which the operator quantizes to 8 bits, and of the numbers that B stands for, plus the bias.
References dynamic_quantize_matmul(const Call& call) {
  const Array &a = call.in(0, 2), &b = call.in(1, 2), &scale = call.in(2);
  require(a.dtype == BP_DTYPE_FLOAT && !is_float(b.dtype) && b.rank() == 2 && a.extents.back() == b.extents[0],
          "A and B are not a float and an integer matrix that fit each other");
  Extents extents = a.extents;
  extents.back() = b.extents[1];
  require_steps(static_cast<double>(count_of(extents)) * static_cast<double>(b.extents[0]));
  std::vector<Tracked> exact(a.values.begin(), a.values.end());
  const std::vector<Tracked> rows = dynamically_quantized(exact);
  std::vector<Tracked> all;
  for_each_index(extents, [&](const Index& at) {
    const int64_t column = at.back(), row = static_cast<int64_t>(all.size()) / extents.back();
    const Tracked step(of_column(scale, column));
    const double zero = call.has(3) ? of_column(call.in(3), column) : 0;
    TrackedSum sum(BP_DTYPE_FLOAT);
    for (int64_t i = 0; i < b.extents[0]; ++i)
      sum.add(rows[static_cast<size_t>(row * b.extents[0] + i)], Tracked(b.at({i, column}) - zero) * step);
    all.push_back(sum.result());
    if (call.has(4)) all.back() = all.back() + Tracked(call.vector(4, extents.back())[static_cast<size_t>(column)]);
  });
  return {tracked_reference(BP_DTYPE_FLOAT, extents, all)};
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"DynamicQuantizeMatMul", {1}, dynamic_quantize_matmul, kMicrosoft},
    {"FusedConv", {1}, fused_conv, kMicrosoft},
    {"FusedGemm", {1}, fused_gemm, kMicrosoft},
    {"FusedMatMul", {1}, fused_matmul, kMicrosoft},
    {"MatMulIntegerToFloat", {1}, matmul_integer_to_float, kMicrosoft},
};

}  // namespace

std::span<const Operator> fused_products_operators() {
  return kOperators;
}

}  // namespace backplane::conform
