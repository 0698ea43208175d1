// SPDX-License-Identifier: Apache-2.0
// A total order of numbers: NaN stands after everything else and equals itself, so that sorting stays defined.
#pragma once

namespace backplane::cpu {

template <class T>
bool ordered_before(T a, T b) {
  return a == a && (b != b || a < b);
}

}  // namespace backplane::cpu
