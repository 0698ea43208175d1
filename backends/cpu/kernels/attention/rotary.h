// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding of one head: pairs of elements are rotated by an angle that grows with the position.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Rotates the first `dim` of `size` elements, copies the others. Pairs are neighbours if `interleaved`, else (i, i +
// dim/2); `cosine` and `sine` hold dim/2 elements. Computed in `C`.
template <class C, class T, class U>
void rotate_head(const T* x, U* y, int64_t size, int64_t dim, bool interleaved, const T* cosine, const T* sine) {
  const int64_t half = dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
    const C a = static_cast<C>(x[first]), b = static_cast<C>(x[second]);
    const C c = static_cast<C>(cosine[i]), s = static_cast<C>(sine[i]);
    y[first] = static_cast<U>(c * a - s * b);
    y[second] = static_cast<U>(s * a + c * b);
  }
  for (int64_t i = 2 * half; i < size; ++i) y[i] = static_cast<U>(static_cast<C>(x[i]));
}

}  // namespace backplane::cpu
