// SPDX-License-Identifier: Apache-2.0
// Oracles of unary elementwise operators.
#include "judge/oracle.h"

#include <cmath>
#include <numbers>

namespace backplane::conform {
namespace {

using Function = double (*)(const Call& call, double x);

// kScale may be NULL if the rule needs no scale.
template <Function kFunction, Function kScale = nullptr>
References map(const Call& call, Rule rule, bp_dtype_t dtype) {
  Reference result(Array(dtype, call.in(0).extents), rule);
  for (size_t i = 0; i < result.value.values.size(); ++i) {
    const double x = call.in(0).values[i];
    result.value.values[i] = kFunction(call, x);
    if constexpr (kScale != nullptr) result.scale.push_back(std::isfinite(x) ? kScale(call, x) : 0);
  }
  return {result};
}

template <Function kFunction, Rule (*kRule)()>
References plain(const Call& call) {
  return map<kFunction>(call, kRule(), call.in(0).dtype);
}
template <Function kFunction>
References to_bool(const Call& call) {
  return map<kFunction>(call, Rule::exact(), BP_DTYPE_BOOL);
}
template <Function kFunction, Function kScale>
References smooth(const Call& call) {
  require(is_float(call.in(0).dtype), "the operator is for floating-point numbers");
  return map<kFunction, kScale>(call, Rule::smooth(), call.in(0).dtype);
}

double magnitude(const Call&, double x) {
  return std::fabs(x);
}
double one(const Call&, double) {
  return 1;
}

Rule half() {
  return Rule::within(0.5);
}
Rule single() {
  return Rule::within(1);
}
Rule five() {
  return Rule::within(5);
}

double absolute(const Call&, double x) {
  return std::fabs(x);
}
double negate(const Call&, double x) {
  return -x;
}
// Integers have no -0, so adding 0.0 turns -0 into 0.
References neg(const Call& call) {
  References result = map<negate>(call, Rule::exact(), call.in(0).dtype);
  if (!is_float(call.in(0).dtype)) {
    for (double& x : result[0].value.values) x += 0.0;
  }
  return result;
}
double sign(const Call&, double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}
double round_even(const Call&, double x) {
  return std::nearbyint(x);
}
double floor_of(const Call&, double x) {
  return std::floor(x);
}
double ceil_of(const Call&, double x) {
  return std::ceil(x);
}
double root(const Call&, double x) {
  return std::sqrt(x);
}
double reciprocal(const Call&, double x) {
  return 1 / x;
}
double erf_of(const Call&, double x) {
  return std::erf(x);
}
double logical_not(const Call&, double x) {
  return x == 0;
}
double is_nan(const Call&, double x) {
  return std::isnan(x);
}
double relu(const Call&, double x) {
  return x < 0 ? 0 : x;  // keeps NaN
}
double leaky_relu(const Call& call, double x) {
  return x < 0 ? call.real("alpha") * x : x;
}

double exp_of(const Call&, double x) {
  return std::exp(x);
}
References exponential(const Call& call) {
  return map<exp_of, magnitude>(call, Rule::of(Rule::kExp), call.in(0).dtype);
}
double logistic(const Call&, double x) {
  return 1 / (1 + std::exp(-x));
}
References sigmoid(const Call& call) {
  return map<logistic, magnitude>(call, Rule::of(Rule::kSigmoid), call.in(0).dtype);
}

// log(m·2^e) = log(m) + e·ln 2: near 1 the two terms cancel, and the magnitude of each is at most 1.
double logarithm(const Call&, double x) {
  return std::log(x);
}
double log_scale(const Call&, double x) {
  return x > 0.5 && x < 2 ? 1 : 0;
}
double sine(const Call&, double x) {
  return std::sin(x);
}
double cosine(const Call&, double x) {
  return std::cos(x);
}
// Devices may compute (1 - e) / (1 + e) with e = exp(-2x), where the numerator cancels near 0.
double tangent(const Call&, double x) {
  return std::tanh(x);
}

double elu(const Call& call, double x) {
  return x < 0 ? call.real("alpha") * std::expm1(x) : x;
}
double elu_scale(const Call& call, double x) {
  return x < 0 ? std::fabs(call.real("alpha")) : 0;
}
double selu(const Call& call, double x) {
  return call.real("gamma") * elu(call, x);
}
double selu_scale(const Call& call, double x) {
  return x < 0 ? std::fabs(call.real("gamma") * call.real("alpha")) : 0;
}
double hard_sigmoid(const Call& call, double x) {
  const double y = call.real("alpha") * x + call.real("beta");
  return std::isnan(x) ? x : std::fmax(0, std::fmin(1, y));
}
double hard_sigmoid_scale(const Call& call, double x) {
  return std::fmin(2, std::fabs(call.real("alpha") * x) + std::fabs(call.real("beta")));
}
double hard_swish(const Call&, double x) {
  return x * std::fmax(0, std::fmin(1, x / 6 + 0.5));
}
double softplus(const Call&, double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}
double softsign(const Call&, double x) {
  return x / (1 + std::fabs(x));
}
double mish(const Call& call, double x) {
  return x * std::tanh(softplus(call, x));
}
// x/2 · (1 + erf(x/√2)): for x < 0, the sum in parentheses cancels.
double gelu(const Call& call, double x) {
  if (call.text("approximate") == "tanh") {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

const Operator kOperators[] = {
    {"Abs", {13}, plain<absolute, Rule::exact>},
    {"Neg", {13}, neg},
    {"Sign", {13}, plain<sign, Rule::exact>},
    {"Floor", {13}, plain<floor_of, Rule::exact>},
    {"Ceil", {13}, plain<ceil_of, Rule::exact>},
    {"Round", {11, 22}, plain<round_even, Rule::exact>},
    {"Not", {1}, to_bool<logical_not>},
    {"IsNaN", {13, 20}, to_bool<is_nan>},
    {"Relu", {14}, plain<relu, Rule::exact>},
    {"LeakyRelu", {16}, plain<leaky_relu, half>},
    {"Sqrt", {13}, plain<root, single>},
    {"Reciprocal", {13}, plain<reciprocal, single>},
    {"Erf", {13}, plain<erf_of, five>},
    {"Exp", {13}, exponential},
    {"Sigmoid", {13}, sigmoid},
    {"Log", {13}, smooth<logarithm, log_scale>},
    {"Sin", {7, 22}, smooth<sine, one>},
    {"Cos", {7, 22}, smooth<cosine, one>},
    {"Tanh", {13}, smooth<tangent, one>},
    {"Elu", {6, 22}, smooth<elu, elu_scale>},
    {"Selu", {6, 22}, smooth<selu, selu_scale>},
    {"HardSigmoid", {6, 22}, smooth<hard_sigmoid, hard_sigmoid_scale>},
    {"HardSwish", {14, 22}, smooth<hard_swish, magnitude>},
    {"Softplus", {1, 22}, smooth<softplus, one>},
    {"Softsign", {1, 22}, smooth<softsign, one>},
    {"Mish", {18, 22}, smooth<mish, magnitude>},
    {"Gelu", {20}, smooth<gelu, magnitude>},
};

}  // namespace

std::span<const Operator> unary_operators() {
  return kOperators;
}

}  // namespace backplane::conform
