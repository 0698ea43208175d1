// SPDX-License-Identifier: Apache-2.0
// y[outer][to][inner] of x[outer][from][inner]: each place along the axis is a sum of TAPS places of x, or `fill` where
// the first of them is -1. TYPE; one tap has weight 1.
kernel void along(global const S(TYPE)* x, global const S(TYPE)* fill, global const int* places,
                  global const float* weights, global S(TYPE)* y, int outer, int from, int to, int inner) {
  const int i = (int)get_global_id(0), o = (int)get_global_id(1), n = (int)get_global_id(2);
  if (i >= inner || o >= to) return;
  const int at = (n * to + o) * inner + i;
  const int first = places[o * TAPS];
  if (first < 0) {
    STORE(TYPE, y, at, LOAD(TYPE, fill, 0));
    return;
  }
  x += (size_t)n * from * inner + i;
#if TAPS == 1
  STORE(TYPE, y, at, LOAD(TYPE, x, first * inner));
#else
  C(TYPE) sum = 0;
  for (int k = 0; k < TAPS; ++k) {
    const float weight = weights[o * TAPS + k];
    if (weight != 0) sum += weight * LOAD(TYPE, x, places[o * TAPS + k] * inner);
  }
  STORE(TYPE, y, at, sum);
#endif
}
