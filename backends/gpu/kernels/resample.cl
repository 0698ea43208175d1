// SPDX-License-Identifier: Apache-2.0
// y[outer][to][inner] from x[outer][from][inner]: each position of y along the axis is a weighted sum of TAPS positions
// of x, listed in `positions`; if the first of these is -1, the result is `fill`. TYPE is the element type; with a single
// tap, which has weight 1, it may be an unsigned integer of the elements' size. INNERMOST: inner is 1, and adjacent
// work items compute adjacent positions along the axis.
kernel void resample(GLOBAL const S(TYPE)* restrict x, GLOBAL const S(TYPE)* fill, GLOBAL const int* positions,
                  GLOBAL const float* weights, GLOBAL S(TYPE)* restrict y, int outer, int from, int to, int inner) {
#ifdef INNERMOST
  const int i = 0, o = (int)get_global_id(0), n = (int)get_global_id(1);
  if (n >= outer) return;
#else
  const int i = (int)get_global_id(0), o = (int)get_global_id(1), n = (int)get_global_id(2);
#endif
  if (i >= inner || o >= to) return;
  const int at = (n * to + o) * inner + i;
  const int first = positions[o * TAPS];
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
    if (weight != 0) sum += weight * LOAD(TYPE, x, positions[o * TAPS + k] * inner);
  }
  STORE(TYPE, y, at, sum);
#endif
}

#ifdef RUN
// Like `resample`, but a work item computes up to RUN adjacent elements of inner.
kernel void resample_runs(GLOBAL const S(TYPE)* restrict x, GLOBAL const S(TYPE)* fill, GLOBAL const int* positions,
                       GLOBAL const float* weights, GLOBAL S(TYPE)* restrict y, int outer, int from, int to,
                       int inner) {
  const int begin = (int)get_global_id(0) * RUN, o = (int)get_global_id(1), n = (int)get_global_id(2);
  if (begin >= inner || o >= to) return;
  const int count = min(RUN, inner - begin);
  x += (size_t)n * from * inner + begin;
  y += (size_t)(n * to + o) * inner + begin;
  const int first = positions[o * TAPS];
  if (first < 0) {
    const C(TYPE) v = LOAD(TYPE, fill, 0);
    for (int i = 0; i < count; ++i) STORE(TYPE, y, i, v);
    return;
  }
#if TAPS == 1
  for (int i = 0; i < count; ++i) STORE(TYPE, y, i, LOAD(TYPE, x, first * inner + i));
#else
  C(TYPE) sums[RUN];
  for (int i = 0; i < count; ++i) sums[i] = 0;
  for (int k = 0; k < TAPS; ++k) {
    const float weight = weights[o * TAPS + k];
    if (weight == 0) continue;
    const int line = positions[o * TAPS + k] * inner;
    for (int i = 0; i < count; ++i) sums[i] += weight * LOAD(TYPE, x, line + i);
  }
  for (int i = 0; i < count; ++i) STORE(TYPE, y, i, sums[i]);
#endif
}
#endif
