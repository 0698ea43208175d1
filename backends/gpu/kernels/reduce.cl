// SPDX-License-Identifier: Apache-2.0
// Reduces x[outer][n][inner] of TYPE to y[outer][inner]. A row is the n elements of one (outer, inner).
//
// FIRST        the neutral element of JOIN, such as 0 for a sum; the result without any contributions is FINISH(FIRST)
// MAP(v)       the contribution of element v
// JOIN(a, b)   combines two contributions
// FINISH(a)    the result, from all contributions combined
// SHIFTED      MAP and FINISH may use `shift`: the row's greatest element if that is finite, otherwise 0
// LANES        work items that share a row
// WIDE         instead of LANES: the number of adjacent rows that a work item reduces; inner is at least WIDE
#ifdef WIDE
kernel void reduce_wide(GLOBAL const S(TYPE)* restrict x, GLOBAL S(TYPE)* restrict y, int items, int n, int inner) {
  const int item = (int)get_global_id(0);
  if (item >= items) return;
  const int blocks = (inner + WIDE - 1) / WIDE;
  const int first = min(item % blocks * WIDE, inner - WIDE);  // the last block is moved back to end at `inner`
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
