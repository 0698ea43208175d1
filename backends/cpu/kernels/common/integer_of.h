// SPDX-License-Identifier: Apache-2.0
// Conversion of a floating-point number to an integer, as Cast does it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace backplane::cpu {

// Rounds toward zero. A number beyond the type becomes its nearest limit; types of fewer than 32 bits take the lowest
// bits of the number as int32_t. NaN becomes 0.
template <class To>
To integer_of(double value) {
  using Wide = std::conditional_t<(sizeof(To) < sizeof(int32_t)), int32_t, To>;
  // The bounds as doubles: the lower one is exact; the upper one is the first value out of range.
  using Limits = std::numeric_limits<Wide>;
  if (!(value > static_cast<double>(Limits::lowest())))
    return std::isnan(value) ? To(0) : static_cast<To>(Limits::lowest());
  if (value >= std::ldexp(1.0, Limits::digits)) return static_cast<To>(Limits::max());
  return static_cast<To>(static_cast<Wide>(value));
}

}  // namespace backplane::cpu
