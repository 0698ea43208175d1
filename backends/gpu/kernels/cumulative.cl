// SPDX-License-Identifier: Apache-2.0
// Running sums (JOIN is +, FIRST is 0) or products (JOIN is *, FIRST is 1) along n of [outer][n][inner]. TYPE is the
// element type. REVERSE: runs from the end of n to its beginning. EXCLUSIVE: a result excludes the element at its own index.
kernel void cumulative(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, int rows, int n, int inner) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  const size_t begin = (size_t)(row / inner) * n * inner + row % inner;
  x += begin;
  y += begin;
  C(TYPE) so_far = FIRST;
  for (int k = 0; k < n; ++k) {
#ifdef REVERSE
    const int i = (n - 1 - k) * inner;
#else
    const int i = k * inner;
#endif
    const C(TYPE) v = LOAD(TYPE, x, i);
#ifdef EXCLUSIVE
    STORE(TYPE, y, i, so_far);
    so_far = so_far JOIN v;
#else
    so_far = so_far JOIN v;
    STORE(TYPE, y, i, so_far);
#endif
  }
}
