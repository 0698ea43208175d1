// SPDX-License-Identifier: Apache-2.0
// The addition of another tensor to results in registers (PointwiseSum), for functions marked FOR_AVX512.
#pragma once

#include "kernels/q8/q8_pointwise_tile.h"
#include "kernels/simd/q8_lanes.h"

#ifdef Q8_LANES
namespace backplane::cpu::q8_lanes {

using Floats = Vectors<64>::Floats;

// Adds another quantized value to a result, which is rounded to a quantized value first. Returns the sum in its own
// quantization steps. A template, because GCC warns about vectors in functions compiled for the baseline.
template <class V>
[[gnu::always_inline]] inline V added(const V& value, const V& other, const PointwiseSum& s) {
  const V quantized = minps(maxps(nearest_of(value), V{} + s.low), V{} + s.high);
  const V x = quantized * s.scale, z = (other - s.other_zero) * s.other_scale;
  return quotient(x + z, V{} + s.result_scale, V{} + s.inverse);
}

}  // namespace backplane::cpu::q8_lanes
#endif
