// SPDX-License-Identifier: Apache-2.0
// The distribution of errors: how many elements have an error of a given fraction of their bound.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace backplane::conform {

// Entry [0] counts elements without error, and [1] errors up to 2^-7 of the bound. Entries [i] for 2 <= i <= 9 count
// errors above 2^(i-9) and up to 2^(i-8), so [8] includes the bound itself. Entry [10] counts errors of more than twice
// the bound, and NaN instead of a number.
using Histogram = std::array<uint32_t, 11>;

inline size_t bucket_of(double fraction) {
  if (fraction == 0) return 0;
  if (!(fraction <= 2)) return 10;
  return static_cast<size_t>(std::clamp(std::ceil(std::log2(fraction)) + 8, 1.0, 9.0));
}

}  // namespace backplane::conform
