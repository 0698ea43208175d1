// SPDX-License-Identifier: Apache-2.0
// Numbers that an operator quantizes itself, as DynamicQuantizeLinear does, before it computes with them.
#pragma once

#include <algorithm>

#include "judge/tracked.h"

namespace backplane::conform {

// Quantizes the numbers to 8 bits and returns the numbers that the quantized values stand for. If a quotient is so
// close to the midpoint of two integers that a device may round it either way, the error includes one step.
inline std::vector<Tracked> dynamically_quantized(const std::vector<Tracked>& numbers) {
  constexpr double kUnit = 0x1p-24;  // the relative error of one fp32 rounding, the unit of Tracked::error
  Tracked low(0.0), high(0.0);
  for (const Tracked& x : numbers) {
    low = {std::fmin(low.value, x.value), std::fmax(low.error, x.error)};
    high = max(high, x);
  }
  const Tracked scale = low.value == high.value ? Tracked(1.0) : (high - low) / Tracked(255.0);
  const auto middle_of = [](const Tracked& quotient) {  // whether a device may round it either way
    const double rest = std::fabs(quotient.value - std::floor(quotient.value) - 0.5);
    return rest <= quotient.error * kUnit;
  };
  const Tracked first = Tracked(-low.value, low.error) / scale;
  const double zero = std::clamp(std::nearbyint(first.value), 0.0, 255.0);
  std::vector<Tracked> results;
  for (const Tracked& x : numbers) {
    const Tracked quotient = x / scale;
    const double whole = std::nearbyint(quotient.value), kept = std::clamp(whole, -zero, 255 - zero);
    const bool is_end = kept <= -zero || kept >= 255 - zero;
    Tracked result = Tracked(kept) * scale;
    if (middle_of(quotient) || (is_end && middle_of(first))) result.error += scale.value / kUnit;
    results.push_back(result);
  }
  return results;
}

}  // namespace backplane::conform
