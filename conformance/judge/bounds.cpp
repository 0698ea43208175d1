// SPDX-License-Identifier: Apache-2.0
#include "judge/bounds.h"

#include <algorithm>
#include <cmath>

namespace backplane::conform {
namespace {

// Fraction bits of the accumulator that a type requires: those of fp32 for fp32 and smaller types.
int accumulator_bits(const FloatType& type) {
  return std::max(type.fraction_bits, 23);
}

// The rounding error of an argument of exp, in units of one rounding to the type. BFLOAT16 has the range of fp32, so
// arguments reach 88. Rounded to BFLOAT16's 8 bits, they would have errors that allow any result, so a device must
// scale them in fp32, which has 16 more bits.
double argument_rounding(const FloatType& type) {
  return type.fraction_bits == 7 ? 0x1p-16 : 1;
}

}  // namespace

double piled_up(double terms, const FloatType& type, int accumulator_bits) {
  return std::ceil(terms / std::exp2((accumulator_bits - type.fraction_bits) / 2.0));
}

double dot_unit(const FloatType& type, double scale) {
  return std::max(type.epsilon() / 2 * scale, type.min_normal());
}

double bound(const Rule& rule, const FloatType& type, double value, double scale) {
  const double ulp = type.ulp(value), relative = type.epsilon() * std::fabs(value);
  // Subnormal numbers are farther apart than 2^-frac·|value|, so the bound also allows for their rounding.
  const double subnormal = std::fabs(value) < type.min_normal() ? ulp : 0;
  const double ksb = piled_up(rule.terms, type, accumulator_bits(type));
  const double argument = argument_rounding(type) * scale;
  switch (rule.kind) {
    case Rule::kBits:
    case Rule::kExact:
      return 0;
    // Rounding to nearest costs half an ULP. Where IEEE 754 does not define the error, the oracle passes the number of
    // ULPs that standards for GPUs, such as Vulkan's, allow.
    case Rule::kUlps:
      return rule.ulps * ulp;
    // The result is computed from intermediate results t, and `scale` is Σ|t|. Each t inherits up to three roundings
    // from its inputs and adds ksb of its own, where ksb is 1 unless t is a sum. Each rounding is 2^-(frac+1)·|t|. If
    // the t cancel, the total is much more than an ULP of the result.
    case Rule::kSmooth:
      return 16 * ulp + (3 + ksb) * type.epsilon() / 2 * scale;
    // exp(x(1+d)) = exp(x)·(1 + x·d): the rounding of the scaled argument is multiplied by |x|. Vulkan allows 3 + 2|x|
    // ULP for fp32 and 1 + 2|x| for fp16.
    case Rule::kExp:
      return relative * (2 * argument + (type.fraction_bits == 23 ? 3 : 1)) + subnormal;
    // 1 / (1 + exp(-x)) has the error of exp, of an addition and of a division.
    case Rule::kSigmoid:
      return relative * 2 * (1 + argument) + subnormal;
    // exp(y·ln|x|): the argument of exp multiplies the errors of the logarithm and of the product.
    case Rule::kPower:
      return relative * (7.5 * argument + 3) + subnormal;
    // Every multiplication contributes a factor (1 + d) with |d| <= 2^-(frac+1).
    case Rule::kProduct:
      return std::fabs(value) * std::expm1(rule.terms * std::log1p(type.epsilon() / 2)) + subnormal;
    // Each of ksb roundings is at most u, and in the worst case all are in one direction. Products round, too, hence
    // the factor 2.
    case Rule::kDot:
      return 2 * ksb * dot_unit(type, scale);
    case Rule::kSum:
      return 2 * ksb * dot_unit(type, scale) + 16 * ulp;
    // Texture units interpolate with 8-bit weights, so an error of 1.5/256 of the largest input is allowed.
    case Rule::kResize:
      return std::max(0.006 * scale, 20 * ulp);
    case Rule::kStep:
      return 0.5 + scale;
    case Rule::kGraph:
      return scale;
  }
  return 0;
}

}  // namespace backplane::conform
