// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/quantization.h"

namespace backplane::cpu {

// An integral float as an integer type, saturated; NaN becomes 0.
template <class T>
T saturate(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<T>(std::clamp(value, static_cast<float>(std::numeric_limits<T>::lowest()),
                                   static_cast<float>(std::numeric_limits<T>::max())));
}

// As DynamicQuantizeLinear defines it: the range of the numbers includes 0. The quantized values go to y, which may be
// null.
Quantization quantize_dynamically(const float* x, uint8_t* y, int64_t count);

}  // namespace backplane::cpu
