// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/number.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace standin {
namespace {

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

// Rounds to the nearest, ties to even.
uint16_t float_to_half(float value) {
  const auto sign = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16 & 0x8000);
  const float size = std::abs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 11, -24);  // the exponent of the last bit
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  // Below 1024 units the number is subnormal; 2048 units carry into the next exponent.
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(unit + 24) * 1024 + units));
}

}  // namespace

double load(lt::DataType type, const void* data, uint64_t at) {
  const auto read = [&](auto value) {
    std::memcpy(&value, static_cast<const char*>(data) + at * sizeof value, sizeof value);
    return value;
  };
  switch (type) {
    case lt::kF64:
      return read(double{});
    case lt::kF16:
      return half_to_float(read(uint16_t{}));
    case lt::kBf16:
      return std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16);
    default:
      return read(float{});
  }
}

void store(lt::DataType type, void* data, uint64_t at, double value) {
  const auto write = [&](auto bits) { std::memcpy(static_cast<char*>(data) + at * sizeof bits, &bits, sizeof bits); };
  const auto narrow = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(narrow);
  switch (type) {
    case lt::kF64:
      return write(value);
    case lt::kF16:
      return write(float_to_half(narrow));
    case lt::kBf16:
      if (std::isnan(narrow)) return write(static_cast<uint16_t>(0x7fc0));
      return write(static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    default:
      return write(narrow);
  }
}

double factor(bool is_tf32, double value) {
  if (!is_tf32 || !std::isfinite(value)) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(value)) + 0x1000) & 0xffffe000);
}

}  // namespace standin
