// SPDX-License-Identifier: Apache-2.0
// Tensors of 8-bit quantized values, as DequantizeLinear reads and QuantizeLinear writes them.
#pragma once

#include <cstdint>

#include "backplane/types.h"

namespace backplane::cpu {

// A quantized value q of a tensor represents the number (q - zero) · scale.
struct Quantization {
  bp_dtype_t dtype = BP_DTYPE_UINT8;  // or INT8
  float scale = 1;
  int32_t zero = 0;

  bool is_signed() const { return dtype == BP_DTYPE_INT8; }
  int32_t low() const { return is_signed() ? -128 : 0; }
  int32_t high() const { return is_signed() ? 127 : 255; }
  bool operator==(const Quantization&) const = default;
};

// Element i of an array of quantized values of either type.
inline int32_t q8_at(const void* values, bool is_signed, int64_t i) {
  return is_signed ? int32_t{static_cast<const int8_t*>(values)[i]} : int32_t{static_cast<const uint8_t*>(values)[i]};
}

// The nearest integer, ties to even, of a value between -2^22 and 2^22. Without a call, so that loops vectorize (also
// in CLONED functions, whose callees must be inlined).
[[gnu::always_inline]] inline float nearest(float value) {
  constexpr float kShift = 12582912.0f;  // 1.5 · 2^23: where adjacent floats are 1 apart
  return (value + kShift) - kShift;
}

}  // namespace backplane::cpu
