// SPDX-License-Identifier: Apache-2.0
// Element types that C++20 lacks: 16-bit floats, BOOL and floats of 8 bits or fewer. They only store values; arithmetic
// is done in float. Conversions from float round to nearest, ties to even, except to FLOAT8E8M0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace backplane::cpu {

inline float half_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(mantissa) * 0x1p-24f));
}

inline uint16_t float_to_half(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  const uint32_t sign = x >> 16 & 0x8000u;
  x &= 0x7fffffffu;
  if (x > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (x >> 13 & 0x3ffu));
  if (x >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and above
  if (x < 0x38800000u) {                                               // below the smallest normal fp16 number
    const float shifted = std::bit_cast<float>(x) + 0.5f;  // its last bit is worth 2^-24, the smallest fp16 number
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  x += 0xfffu + (x >> 13 & 1u);
  return static_cast<uint16_t>(sign | (x - 0x38000000u) >> 13);
}

inline uint16_t float_to_bfloat16(float f) {
  const uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(x >> 16 | 0x40u);
  return static_cast<uint16_t>((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float f) : bits(float_to_half(f)) {}
  operator float() const { return half_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float f) : bits(float_to_bfloat16(f)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// ONNX's BOOL. Reads any byte except 0 as true, because models may contain any byte; writes 0 or 1.
struct Bool {
  uint8_t byte = 0;
  Bool() = default;
  explicit Bool(bool b) : byte(b) {}
  operator bool() const { return byte != 0; }
};

// A format of signed floats with at most 8 bits.
struct Minifloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint8_t largest;   // the bits of the largest finite number
  uint8_t overflow;  // the bits for larger numbers without saturation: infinity, NaN, or the largest number
  int nan;           // the bits of NaN, or -1 if the format has none
  bool unsigned_zero;
};
inline constexpr Minifloat kFloat8E4M3FN{4, 3, 7, 0x7e, 0x7f, 0x7f, false};
inline constexpr Minifloat kFloat8E4M3FNUZ{4, 3, 8, 0x7f, 0x80, 0x80, true};
inline constexpr Minifloat kFloat8E5M2{5, 2, 15, 0x7b, 0x7c, 0x7f, false};
inline constexpr Minifloat kFloat8E5M2FNUZ{5, 2, 16, 0x7f, 0x80, 0x80, true};
inline constexpr Minifloat kFloat4E2M1{2, 1, 1, 0x07, 0x07, -1, false};

float decode(const Minifloat& format, uint8_t bits);
// Numbers beyond the largest finite one become that one if `saturate`, otherwise `format.overflow`. NaN becomes -0 if
// the format has none.
uint8_t encode(const Minifloat& format, float value, bool saturate);

// FLOAT8E8M0: an unsigned power of two, used for block scales.
enum class ScaleRounding { kUp, kDown, kNearest };
float decode_e8m0(uint8_t bits);
// Ignores the sign. 0 becomes the smallest power, 2^-127.
uint8_t encode_e8m0(float value, bool saturate, ScaleRounding rounding);

}  // namespace backplane::cpu
