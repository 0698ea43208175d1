// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/small_types.h"

#include <algorithm>

namespace backplane::cpu {

const Minifloat* minifloat(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT8E4M3FN:
      return &kFloat8E4M3FN;
    case BP_DTYPE_FLOAT8E4M3FNUZ:
      return &kFloat8E4M3FNUZ;
    case BP_DTYPE_FLOAT8E5M2:
      return &kFloat8E5M2;
    case BP_DTYPE_FLOAT8E5M2FNUZ:
      return &kFloat8E5M2FNUZ;
    case BP_DTYPE_FLOAT4E2M1:
      return &kFloat4E2M1;
    default:
      return nullptr;
  }
}

int bits_of(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_UINT2:
    case BP_DTYPE_INT2:
      return 2;
    case BP_DTYPE_UINT4:
    case BP_DTYPE_INT4:
    case BP_DTYPE_FLOAT4E2M1:
      return 4;
    default:
      return static_cast<int>(8 * bytes_of(dtype, 1));
  }
}

float decode_bits(bp_dtype_t dtype, uint8_t element) {
  if (const Minifloat* format = minifloat(dtype)) return decode(*format, element);
  if (dtype == BP_DTYPE_FLOAT8E8M0) return decode_e8m0(element);
  const int bits = bits_of(dtype);
  const bool is_signed = dtype == BP_DTYPE_INT4 || dtype == BP_DTYPE_INT2 || dtype == BP_DTYPE_INT8;
  return static_cast<float>(is_signed && element >> (bits - 1) ? element - (1 << bits) : element);
}

uint8_t encode_bits(bp_dtype_t dtype, float value, EncodeRules rules) {
  if (const Minifloat* format = minifloat(dtype))
    return encode(*format, value, rules.saturate || dtype == BP_DTYPE_FLOAT4E2M1);
  if (dtype == BP_DTYPE_FLOAT8E8M0) return encode_e8m0(value, rules.saturate, rules.rounding);
  constexpr float kBound = 1 << 30;
  const int32_t whole = std::isnan(value) ? 0 : static_cast<int32_t>(std::clamp(value, -kBound, kBound));
  return static_cast<uint8_t>(whole & ((1 << bits_of(dtype)) - 1));
}

void load_floats(bp_dtype_t dtype, const void* data, int64_t begin, float* values, int64_t n) {
  const int bits = bits_of(dtype);
  const auto* bytes = static_cast<const uint8_t*>(data) + begin * bits / 8;
  for (int64_t i = 0; i < n; ++i) values[i] = decode_bits(dtype, load_bits(bytes, bits, i));
}

void store_floats(bp_dtype_t dtype, void* data, int64_t begin, const float* values, int64_t n, EncodeRules rules) {
  const int bits = bits_of(dtype), per_byte = 8 / bits;
  auto* bytes = static_cast<uint8_t*>(data) + begin / per_byte;
  for (int64_t i = 0; i < n; ++i) {
    const int shift = static_cast<int>(i % per_byte) * bits;
    const auto element = static_cast<uint8_t>(encode_bits(dtype, values[i], rules) << shift);
    bytes[i / per_byte] = shift == 0 ? element : static_cast<uint8_t>(bytes[i / per_byte] | element);
  }
}

void unpack(bp_dtype_t dtype, const void* packed, uint8_t* elements, int64_t n) {
  const int bits = bits_of(dtype);
  for (int64_t i = 0; i < n; ++i) elements[i] = load_bits(packed, bits, i);
}

void pack(bp_dtype_t dtype, const uint8_t* elements, void* packed, int64_t n) {
  const int bits = bits_of(dtype), per_byte = 8 / bits;
  auto* bytes = static_cast<uint8_t*>(packed);
  for (int64_t i = 0; i < n; ++i) {
    const int shift = static_cast<int>(i % per_byte) * bits;
    const auto element = static_cast<uint8_t>((elements[i] & ((1 << bits) - 1)) << shift);
    bytes[i / per_byte] = shift == 0 ? element : static_cast<uint8_t>(bytes[i / per_byte] | element);
  }
}

}  // namespace backplane::cpu
