// SPDX-License-Identifier: Apache-2.0
// Numbers with the error that a device may have accumulated, computed by first-order running error analysis. Operators
// that are a chain of elementary steps (recurrent networks, attention, sampling) get their bounds this way.
#pragma once

#include <cmath>
#include <vector>

#include "judge/oracle.h"

namespace backplane::conform {

// `error` counts roundings in units of u = 2^-(frac+1) of the type that the device computes in. Each step adds the
// error that the bounds allow it: 0.5 ULP for sums and products, 2 for quotients, 1 for roots, the bounds of kExp and
// kSigmoid for exp and sigmoid, and 16 ULP plus an absolute term for other smooth functions. An ULP of x is at most
// 2u·|x|.
struct Tracked {
  double value = 0, error = 0;

  Tracked() = default;
  Tracked(double exact) : value(exact) {}
  Tracked(double number, double roundings) : value(number), error(roundings) {}
};

inline Tracked operator+(const Tracked& a, const Tracked& b) {
  return {a.value + b.value, a.error + b.error + std::fabs(a.value + b.value)};
}
inline Tracked operator-(const Tracked& a, const Tracked& b) {
  return {a.value - b.value, a.error + b.error + std::fabs(a.value - b.value)};
}
inline Tracked operator*(const Tracked& a, const Tracked& b) {
  const double product = a.value * b.value;
  return {product, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + std::fabs(product)};
}
inline Tracked operator/(const Tracked& a, const Tracked& b) {
  const double quotient = a.value / b.value;
  return {quotient, (a.error + std::fabs(quotient) * b.error) / std::fabs(b.value) + 4 * std::fabs(quotient)};
}
// A smooth function with the given value and derivative. The derivative multiplies the error of x.
inline Tracked smooth_step(const Tracked& x, double value, double derivative) {
  return {value, std::fabs(derivative) * x.error + 32 * std::fabs(value) + 4};
}
inline Tracked exp(const Tracked& x) {
  const double value = std::exp(x.value);
  return {value, value * (x.error + 2 * (2 * std::fabs(x.value) + 3))};
}
inline Tracked sqrt(const Tracked& x) {
  const double value = std::sqrt(x.value);
  return {value, (value == 0 ? 0 : x.error / (2 * value)) + 2 * value};
}
inline Tracked log(const Tracked& x) {
  return smooth_step(x, std::log(x.value), 1 / x.value);
}
inline Tracked tanh(const Tracked& x) {
  const double value = std::tanh(x.value);
  return smooth_step(x, value, 1 - value * value);
}
inline Tracked sigmoid(const Tracked& x) {
  const double value = 1 / (1 + std::exp(-x.value));
  return {value, value * (1 - value) * x.error + 4 * value * (1 + std::fabs(x.value))};
}
inline Tracked max(const Tracked& a, const Tracked& b) {
  return {std::fmax(a.value, b.value), std::fmax(a.error, b.error)};
}

// A sum of products in any order. It has 2·ksb roundings of Σ|a·b| and the errors of the factors.
class TrackedSum {
 public:
  explicit TrackedSum(bp_dtype_t dtype) : dtype_(dtype) {}

  void add(const Tracked& a, const Tracked& b = 1.0) {
    value_ += a.value * b.value;
    error_ += std::fabs(a.value) * b.error + std::fabs(b.value) * a.error;
    magnitude_ += std::fabs(a.value * b.value);
    ++terms_;
  }
  Tracked result() const {
    const FloatType& type = float_type(dtype_);
    return {value_, error_ + 2 * piled_up(terms_, type, std::max(type.fraction_bits, 23)) * magnitude_};
  }

 private:
  bp_dtype_t dtype_;
  double value_ = 0, error_ = 0, magnitude_ = 0, terms_ = 0;
};

// Makes an output of tracked elements. Twice the first-order error covers the terms of higher order, and one more ULP
// covers the rounding of the result.
inline Reference tracked_reference(bp_dtype_t dtype, Extents extents, const std::vector<Tracked>& elements) {
  Reference result(Array(dtype, std::move(extents)), Rule::of(Rule::kGraph));
  require(elements.size() == result.value.values.size(), "the number of elements differs from that of the output");
  const FloatType& type = float_type(dtype);
  for (size_t i = 0; i < elements.size(); ++i) {
    result.value.values[i] = elements[i].value;
    result.scale.push_back(elements[i].error * type.epsilon() + type.ulp(elements[i].value));
  }
  result.typical = result.scale;
  return result;
}

}  // namespace backplane::conform
