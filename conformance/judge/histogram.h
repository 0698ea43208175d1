// SPDX-License-Identifier: Apache-2.0
// The distribution of errors: counts of elements by error as a fraction of the bound.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace backplane::conform {

// [0] no error; [1] up to 2^-7 of the bound; [i] for 2 <= i <= 9 above 2^(i-9) and up to 2^(i-8), so that [8] includes
// the bound itself; [10] more than twice the bound, or NaN instead of a number.
using Histogram = std::array<uint32_t, 11>;

inline size_t bucket_of(double fraction) {
  if (fraction == 0) return 0;
  if (!(fraction <= 2)) return 10;
  return static_cast<size_t>(std::clamp(std::ceil(std::log2(fraction)) + 8, 1.0, 9.0));
}

}  // namespace backplane::conform
