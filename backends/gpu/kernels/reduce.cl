// SPDX-License-Identifier: Apache-2.0
// y[outer][inner] from x[outer][n][inner] of TYPE. FIRST: the result for no elements; MAP(v): what an element adds;
// JOIN(a, b): combines two; FINISH(a): the result. SHIFTED: they may use `shift`, the row's greatest element if finite,
// else 0. LANES work items share a row. WIDE: instead, an item reduces WIDE neighbouring rows; inner is at least WIDE.
#ifdef WIDE
kernel void reduce_wide(GLOBAL const S(TYPE)* restrict x, GLOBAL S(TYPE)* restrict y, int items, int n, int inner) {
  const int item = (int)get_global_id(0);
  if (item >= items) return;
  const int blocks = (inner + WIDE - 1) / WIDE;
  const int first = min(item % blocks * WIDE, inner - WIDE);  // the last block is moved back, overlapping another
  x += (size_t)(item / blocks) * n * inner + first;
  y += (size_t)(item / blocks) * inner + first;
  C(TYPE) results[WIDE];
  for (int r = 0; r < WIDE; ++r) results[r] = FIRST;
  for (int i = 0; i < n; ++i) {
    for (int r = 0; r < WIDE; ++r) {
      const C(TYPE) v = LOAD(TYPE, x, i * inner + r), part = MAP(v), before = results[r];
      results[r] = JOIN(before, part);
    }
  }
  for (int r = 0; r < WIDE; ++r) {
    const C(TYPE) result = results[r];
    STORE(TYPE, y, r, FINISH(result));
  }
}
#else
#if LANES > 1
JOINED(joined, C(TYPE), JOIN(a, b))
#ifdef SHIFTED
JOINED(greatest, C(TYPE), GREATER(a, b))
#endif
#endif

kernel void reduce(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, int rows, int n, int inner) {
  const int row = (int)get_global_id(0) / LANES, lane = (int)get_global_id(0) % LANES;
#if LANES > 1
  SHARED(C(TYPE), shared, LANES);
#else
  if (row >= rows) return;
#endif
  x += (size_t)(row / inner) * n * inner + row % inner;
#ifdef SHIFTED
  C(TYPE) shift = -INFINITY;
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner);
    shift = GREATER(shift, v);
  }
#if LANES > 1
  shift = greatest(shift, shared);
#endif
  if (!isfinite(shift)) shift = 0;
#endif
  C(TYPE) result = FIRST;
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner), part = MAP(v);
    result = JOIN(result, part);
  }
#if LANES > 1
  result = joined(result, shared);
  if (lane == 0)
#endif
    STORE(TYPE, y, row, FINISH(result));
}
#endif
