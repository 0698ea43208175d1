// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/quantization.h"

namespace backplane::cpu {

// A whole number as an integer type, at its limits where it is beyond them; NaN becomes 0.
template <class T>
T saturate(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<T>(std::clamp(value, static_cast<float>(std::numeric_limits<T>::lowest()),
                                   static_cast<float>(std::numeric_limits<T>::max())));
}

// As DynamicQuantizeLinear has it: the range of the numbers includes 0. The codes go to y, which may be null.
Quantization quantize_dynamically(const float* x, uint8_t* y, int64_t count);

}  // namespace backplane::cpu
