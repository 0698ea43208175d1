// SPDX-License-Identifier: Apache-2.0
// Adds or multiplies two tensors of quantized values element by element. Results are bit-identical to those of
// DequantizeLinear, Add or Mul, and QuantizeLinear.
#pragma once

#include <memory>

#include "kernels/common/quantization.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct Q8Sum {
  Quantization a, b, result;  // all of one data type
  bool multiplies = false;    // false: adds
  bool rectifies = false;     // negative results become 0

  // Whether the scales are moderate enough that neither floats nor 32-bit results can overflow.
  bool stays_small() const;
};

// Both inputs must have the result's extents: they are not broadcast.
std::unique_ptr<Kernel> make_q8_sum(Q8Sum sum);

// Combines `n` quantized values; y may be a or b. For CLONED functions (kernels/simd/clones.h).
template <bool kMultiplies, class T>
[[gnu::always_inline]] inline void combine(const Q8Sum& s, const T* a, const T* b, T* y, int64_t n) {
  const auto a_zero = static_cast<float>(s.a.zero), b_zero = static_cast<float>(s.b.zero);
  const auto zero = static_cast<float>(s.result.zero);
  const auto low = s.rectifies ? 0.0f : static_cast<float>(s.result.low()) - zero;
  const auto high = static_cast<float>(s.result.high()) - zero;
  const float a_scale = s.a.scale, b_scale = s.b.scale, scale = s.result.scale;
#pragma GCC ivdep  // iterations are independent, even in place
  for (int64_t i = 0; i < n; ++i) {
    const float x = (static_cast<float>(a[i]) - a_zero) * a_scale, z = (static_cast<float>(b[i]) - b_zero) * b_scale;
    float value = (kMultiplies ? x * z : x + z) / scale;
    value = value > low ? value : low;
    value = value < high ? value : high;
    y[i] = static_cast<T>(static_cast<int32_t>(nearest(value) + zero));
  }
}

}  // namespace backplane::cpu
