// SPDX-License-Identifier: Apache-2.0
#include "judge/float_type.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <stdexcept>
#include <string>

namespace backplane::conform {

double FloatType::min_normal() const {
  return std::ldexp(1.0, min_exponent);
}

double FloatType::epsilon() const {
  return std::ldexp(1.0, -fraction_bits);
}

double FloatType::ulp(double x) const {
  if (x == 0 || !std::isfinite(x)) return std::ldexp(1.0, min_exponent - fraction_bits);
  return std::ldexp(1.0, std::max(std::ilogb(x), min_exponent) - fraction_bits);
}

double FloatType::round(double x) const {
  if (!std::isfinite(x)) return x;
  const double step = ulp(x);
  const double rounded = std::nearbyint(x / step) * step;  // only nearbyint rounds
  return std::fabs(rounded) > max ? std::copysign(HUGE_VAL, x) : std::copysign(rounded, x);
}

const FloatType& float_type(bp_dtype_t dtype) {
  static const FloatType kFp32 = {23, -126, FLT_MAX}, kFp64 = {52, -1022, DBL_MAX}, kFp16 = {10, -14, 65504},
                         kBf16 = {7, -126, std::ldexp(255.0, 120)};
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return kFp32;
    case BP_DTYPE_DOUBLE:
      return kFp64;
    case BP_DTYPE_FLOAT16:
      return kFp16;
    case BP_DTYPE_BFLOAT16:
      return kBf16;
    default:
      throw std::invalid_argument("type " + std::to_string(dtype) + " is not a floating-point type of the oracle");
  }
}

uint16_t encode16(const FloatType& type, double x) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const int exponent_bits = 15 - type.fraction_bits;
  const auto infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << type.fraction_bits);
  if (std::isnan(x)) return static_cast<uint16_t>(infinity | (1 << (type.fraction_bits - 1)));
  const double magnitude = std::fabs(type.round(x));
  if (std::isinf(magnitude)) return sign | infinity;
  if (magnitude < type.min_normal()) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(magnitude / type.ulp(0)));
  }
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<int>((std::ldexp(magnitude, -exponent) - 1) * std::ldexp(1.0, type.fraction_bits));
  return static_cast<uint16_t>(sign | ((exponent - type.min_exponent + 1) << type.fraction_bits) | fraction);
}

double decode16(const FloatType& type, uint16_t bits) {
  const int exponent_bits = 15 - type.fraction_bits, fraction = bits & ((1 << type.fraction_bits) - 1);
  const int exponent = (bits >> type.fraction_bits) & ((1 << exponent_bits) - 1);
  double x = std::ldexp(fraction, type.min_exponent - type.fraction_bits);
  if (exponent != 0)
    x = std::ldexp(std::ldexp(1.0, type.fraction_bits) + fraction,
                   exponent - 1 + type.min_exponent - type.fraction_bits);
  if (exponent == (1 << exponent_bits) - 1) x = fraction == 0 ? HUGE_VAL : std::nan("");
  return (bits & 0x8000) != 0 ? -x : x;
}

}  // namespace backplane::conform
