// SPDX-License-Identifier: Apache-2.0
// A strict weak order of numbers, in which NaN is greater than all other values and equal to NaN, as sorting requires.
#pragma once

namespace backplane::cpu {

template <class T>
bool ordered_before(T a, T b) {
  return a == a && (b != b || a < b);
}

}  // namespace backplane::cpu
