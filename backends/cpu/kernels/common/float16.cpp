// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/float16.h"

#include <algorithm>
#include <limits>

namespace backplane::cpu {

float decode(const Minifloat& f, uint8_t bits) {
  const int sign_bit = 1 << (f.exponent_bits + f.mantissa_bits);
  const int magnitude = bits & (sign_bit - 1);
  const bool negative = (bits & sign_bit) != 0;
  if (f.unsigned_zero ? bits == f.nan : magnitude > f.overflow || magnitude == f.nan)
    return std::numeric_limits<float>::quiet_NaN();
  const float sign = negative ? -1.0f : 1.0f;
  if (!f.unsigned_zero && f.overflow != f.nan && f.nan >= 0 && magnitude == f.overflow)
    return sign * std::numeric_limits<float>::infinity();
  const int exponent = magnitude >> f.mantissa_bits, mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - f.bias - f.mantissa_bits);
}

uint8_t encode(const Minifloat& f, float value, bool saturate) {
  const int sign_bit = 1 << (f.exponent_bits + f.mantissa_bits);
  const int sign = std::signbit(value) ? sign_bit : 0;
  if (std::isnan(value)) {
    if (f.nan < 0) return static_cast<uint8_t>(sign_bit);
    return static_cast<uint8_t>(f.unsigned_zero ? f.nan : f.nan | sign);
  }
  const float magnitude = std::fabs(value);
  int bits = f.largest + 1;
  if (magnitude < 0x1p20f) {
    const int exponent = magnitude == 0 ? 1 - f.bias : std::max(std::ilogb(magnitude), 1 - f.bias);
    // In units in the last place. If rounding reaches the next power of two, the addition below increments the
    // exponent.
    const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent)));
    bits = ((exponent + f.bias - 1) << f.mantissa_bits) + units;
  }
  if (bits > f.largest) {
    if (!saturate) return static_cast<uint8_t>(f.unsigned_zero ? f.overflow : f.overflow | sign);
    bits = f.largest;
  }
  return static_cast<uint8_t>(bits == 0 && f.unsigned_zero ? 0 : bits | sign);
}

float decode_e8m0(uint8_t bits) {
  return bits == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
}

uint8_t encode_e8m0(float value, bool saturate, ScaleRounding rounding) {
  if (std::isnan(value)) return 0xff;
  const float magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return saturate ? 0xfe : 0xff;
  if (magnitude == 0) return 0;
  int exponent = std::ilogb(magnitude);
  const float power = std::ldexp(1.0f, exponent);
  const bool up = rounding == ScaleRounding::kUp        ? magnitude > power
                  : rounding == ScaleRounding::kNearest ? magnitude >= 1.5f * power
                                                        : false;
  exponent += up;
  if (exponent > 127) return saturate ? 0xfe : 0xff;
  return static_cast<uint8_t>(std::max(exponent + 127, 0));
}

}  // namespace backplane::cpu
