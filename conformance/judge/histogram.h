// SPDX-License-Identifier: Apache-2.0
// The distribution of errors: counts of elements by error as a fraction of the bound.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace backplane::conform {

// [0] no error; [i] for 1 <= i <= 9 above 2^(i-9), the first from 0 on, and up to 2^(i-8): [8] ends at the bound
// itself; [10] more than twice the bound, or NaN where there should be a number.
using Histogram = std::array<uint32_t, 11>;

inline size_t bucket_of(double fraction) {
  if (fraction == 0) return 0;
  if (!(fraction <= 2)) return 10;
  return static_cast<size_t>(std::clamp(std::ceil(std::log2(fraction)) + 8, 1.0, 9.0));
}

}  // namespace backplane::conform
