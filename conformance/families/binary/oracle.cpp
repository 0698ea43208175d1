// SPDX-License-Identifier: Apache-2.0
// Oracles of elementwise operators with broadcasting.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>

namespace backplane::conform {
namespace {

using Function = double (*)(double a, double b);

// Applies `function` to the first two broadcast inputs, then to that result and the next input, and so on.
Array fold(const Call& call, Function function, bp_dtype_t dtype) {
  Extents shape = call.in(0).extents;
  for (size_t i = 1; i < call.input_count(); ++i) shape = broadcast(shape, call.in(i).extents);
  Array result(dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    double value = call.in(0).broadcast_at(index);
    for (size_t i = 1; i < call.input_count(); ++i) value = function(value, call.in(i).broadcast_at(index));
    result.at(index) = value;
  });
  return result;
}

void require_one_type(const Call& call) {
  for (size_t i = 1; i < call.input_count(); ++i)
    require(call.in(i).dtype == call.in(0).dtype, "the inputs have different types");
}
void require_two(const Call& call) {
  require(call.input_count() == 2, "there are not two inputs");
  require_one_type(call);
}

template <Function kFunction>
References half_ulp(const Call& call) {
  require_two(call);
  return {Reference(fold(call, kFunction, call.in(0).dtype), Rule::within(0.5))};
}
template <Function kFunction>
References exact(const Call& call) {
  require_one_type(call);
  return {Reference(fold(call, kFunction, call.in(0).dtype), Rule::exact())};
}
template <Function kFunction>
References to_bool(const Call& call) {
  require_two(call);
  return {Reference(fold(call, kFunction, BP_DTYPE_BOOL), Rule::exact())};
}

double add(double a, double b) {
  return a + b;
}
double subtract(double a, double b) {
  return a - b;
}
double multiply(double a, double b) {
  return a * b;
}
double equal(double a, double b) {
  return a == b;
}
double greater(double a, double b) {
  return a > b;
}
double greater_or_equal(double a, double b) {
  return a >= b;
}
double less(double a, double b) {
  return a < b;
}
double less_or_equal(double a, double b) {
  return a <= b;
}
double both(double a, double b) {
  return a != 0 && b != 0;
}
double either(double a, double b) {
  return a != 0 || b != 0;
}
double one_of(double a, double b) {
  return (a != 0) != (b != 0);
}
double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}
double smaller(double a, double b) {
  return std::isnan(a) || a < b ? a : b;
}

References divide(const Call& call) {
  require_two(call);
  const bool real = is_float(call.in(0).dtype);
  Array result = fold(
      call, [](double a, double b) { return a / b; }, call.in(0).dtype);
  if (!real) {
    for (double& x : result.values) x = std::trunc(x);
  }
  return {Reference(std::move(result), Rule::within(2))};
}

// The types of base and exponent may differ.
References power(const Call& call) {
  require(call.input_count() == 2, "there are not two inputs");
  Reference result(fold(
                       call, [](double a, double b) { return std::pow(a, b); }, call.in(0).dtype),
                   Rule::of(Rule::kPower));
  const Array scale = fold(
      call, [](double a, double b) { return a == 0 ? 0 : std::fabs(b * std::log(std::fabs(a))); }, call.in(0).dtype);
  result.scale = scale.values;
  return {result};
}

// The remainder with the sign of `b`.
double floored_remainder(double a, double b) {
  if (std::isinf(b) && std::isfinite(a) && a != 0) return std::signbit(a) == std::signbit(b) ? a : b;
  const double remainder = std::fmod(a, b);  // has the sign of `a`
  if (remainder == 0) return std::copysign(0, b);
  return std::signbit(remainder) == std::signbit(b) ? remainder : remainder + b;
}

// With the attribute `fmod`, the result is that of C's fmod; otherwise it has the divisor's sign, and is rounded where
// the divisor is added to a remainder of the other sign. ONNX defines the sign of a zero only for a dividend of ±0.
References modulo(const Call& call) {
  require_two(call);
  const bool truncates = call.integer("fmod") != 0, is_real = is_float(call.in(0).dtype);
  const std::vector<double>& dividends = call.in(0).values;
  const bool only_zeros = std::all_of(dividends.begin(), dividends.end(), [](double a) { return a == 0; });
  const Rule rule = truncates || !is_real ? Rule::exact() : only_zeros ? Rule::bits() : Rule::within(0.5);
  return {Reference(
      fold(call, truncates ? [](double a, double b) { return std::fmod(a, b); } : floored_remainder, call.in(0).dtype),
      rule)};
}

// A sum is judged like a dot product with ones.
References sum(const Call& call) {
  require_one_type(call);
  Reference result(fold(call, add, call.in(0).dtype), Rule::of(Rule::kDot, static_cast<double>(call.input_count())));
  result.scale = fold(
                     call, [](double a, double b) { return std::fabs(a) + std::fabs(b); }, call.in(0).dtype)
                     .values;
  if (call.input_count() == 1) {
    for (double& x : result.scale) x = std::fabs(x);
  }
  return {result};
}

References prelu(const Call& call) {
  require_two(call);
  return {Reference(fold(
                        call, [](double x, double slope) { return x < 0 ? slope * x : x; }, call.in(0).dtype),
                    Rule::within(0.5))};
}

const Operator kOperators[] = {
    {"Add", {14}, half_ulp<add>},
    {"Sub", {14}, half_ulp<subtract>},
    {"Mul", {14}, half_ulp<multiply>},
    {"Div", {14}, divide},
    {"Pow", {15}, power},
    {"Max", {13}, exact<larger>},
    {"Min", {13}, exact<smaller>},
    {"Sum", {13}, sum},
    {"Mod", {13, 28}, modulo},
    {"PRelu", {16}, prelu},
    {"Equal", {13, 19}, to_bool<equal>},
    {"Greater", {13}, to_bool<greater>},
    {"GreaterOrEqual", {16}, to_bool<greater_or_equal>},
    {"Less", {13}, to_bool<less>},
    {"LessOrEqual", {16}, to_bool<less_or_equal>},
    {"And", {7}, to_bool<both>},
    {"Or", {7}, to_bool<either>},
    {"Xor", {7}, to_bool<one_of>},
};

}  // namespace

std::span<const Operator> binary_operators() {
  return kOperators;
}

}  // namespace backplane::conform
