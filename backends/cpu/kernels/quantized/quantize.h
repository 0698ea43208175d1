// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/quantization.h"

namespace backplane::cpu {

// Converts a float without a fraction to an integer type of at most 16 bits, saturating; NaN becomes 0.
template <class T>
T saturate(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<T>(std::clamp(value, static_cast<float>(std::numeric_limits<T>::lowest()),
                                   static_cast<float>(std::numeric_limits<T>::max())));
}

// Quantizes `count` floats as DynamicQuantizeLinear does and returns the scale and zero point, which cover the range of
// x, extended to include 0. Writes the quantized values to y unless y is null. Uses all threads of the device.
Quantization quantize_dynamically(const float* x, uint8_t* y, int64_t count);

}  // namespace backplane::cpu
