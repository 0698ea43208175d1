// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding of one head: rotates pairs of elements by angles that depend on the position.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Rotates the first `dim` of `size` elements and copies the others. A pair is two adjacent elements if `interleaved`,
// else elements i and i + dim/2. `cosine` and `sine` have dim/2 elements. Computes in type `C`.
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
