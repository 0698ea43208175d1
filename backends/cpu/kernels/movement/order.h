// SPDX-License-Identifier: Apache-2.0
// A total order of numbers: NaN is greater than all numbers and equal to itself, so that sorting is well defined.
#pragma once

namespace backplane::cpu {

template <class T>
bool ordered_before(T a, T b) {
  return a == a && (b != b || a < b);
}

}  // namespace backplane::cpu
