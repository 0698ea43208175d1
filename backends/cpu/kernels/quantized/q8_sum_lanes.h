// SPDX-License-Identifier: Apache-2.0
// The addition of another tensor to results in registers (PointwiseSum), for functions marked FOR_AVX512.
#pragma once

#include "kernels/quantized/q8_pointwise_tile.h"
#include "kernels/simd/q8_lanes.h"

#ifdef Q8_LANES
namespace backplane::cpu::q8_lanes {

using Floats = Vectors<64>::Floats;

// Adds another quantized value to a result, which is rounded to a quantized value first. Returns the sum in its own
// quantization steps.
[[gnu::always_inline]] inline Floats added(const Floats& value, const Floats& other, const PointwiseSum& s) {
  const Floats quantized = minps(maxps(nearest_of(value), Floats{} + s.low), Floats{} + s.high);
  const Floats x = quantized * s.scale, z = (other - s.other_zero) * s.other_scale;
  return quotient(x + z, Floats{} + s.result_scale, Floats{} + s.inverse);
}

}  // namespace backplane::cpu::q8_lanes
#endif
