// SPDX-License-Identifier: Apache-2.0
// The place of the greatest (BETTER is >) or least (<) of x[outer][n][inner] along n; NaN is better than any. TYPE;
// LAST: the last of equals.
kernel void arg_reduce(global const S(TYPE)* x, global long* y, int rows, int n, int inner) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  x += (size_t)(row / inner) * n * inner + row % inner;
  C(TYPE) best = LOAD(TYPE, x, 0);
  int place = 0;
  for (int i = 1; i < n; ++i) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner);
#ifdef LAST
    const bool better = v BETTER best || v == best || v != v;
#else
    const bool better = (v BETTER best || v != v) && best == best;
#endif
    place = better ? i : place;
    best = better ? v : best;
  }
  y[row] = place;
}
