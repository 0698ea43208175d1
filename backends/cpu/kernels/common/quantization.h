// SPDX-License-Identifier: Apache-2.0
// Quantization parameters of a tensor of 8-bit quantized values, as DequantizeLinear and QuantizeLinear use them.
#pragma once

#include <cstdint>

#include "backplane/types.h"

namespace backplane::cpu {

// A quantized value q represents the number (q - zero) · scale.
struct Quantization {
  bp_dtype_t dtype = BP_DTYPE_UINT8;  // or BP_DTYPE_INT8
  float scale = 1;
  int32_t zero = 0;

  bool is_signed() const { return dtype == BP_DTYPE_INT8; }
  int32_t low() const { return is_signed() ? -128 : 0; }
  int32_t high() const { return is_signed() ? 127 : 255; }
  bool operator==(const Quantization&) const = default;
};

// Returns element i of an array of INT8 or UINT8 quantized values.
inline int32_t q8_at(const void* values, bool is_signed, int64_t i) {
  return is_signed ? int32_t{static_cast<const int8_t*>(values)[i]} : int32_t{static_cast<const uint8_t*>(values)[i]};
}

// Rounds a value between -2^22 and 2^22 to the nearest integer, ties to even. Uses no library call, so that loops
// vectorize, and is always inlined, as CLONED functions require of their callees.
[[gnu::always_inline]] inline float nearest(float value) {
  constexpr float kShift = 12582912.0f;  // 1.5 · 2^23, where adjacent floats differ by 1
  return (value + kShift) - kShift;
}

}  // namespace backplane::cpu
