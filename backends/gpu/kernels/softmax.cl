// SPDX-License-Identifier: Apache-2.0
// Normalizes [outer][n][inner] of TYPE along n. LANES work items share a row of n elements. KIND: 0 softmax; 1 the
// logarithm of softmax; 2 hardmax, which is 1 at the first greatest element; 3 divides by the sum of magnitudes; 4
// divides by the square root of the sum of squares.
#if LANES > 1
JOINED(sum_of, C(TYPE), a + b)
JOINED(greatest, C(TYPE), GREATER(a, b))
JOINED(earliest, int, min(a, b))
#endif

kernel void softmax(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, int rows, int n, int inner) {
  const int row = (int)get_global_id(0) / LANES, lane = (int)get_global_id(0) % LANES;
#if LANES > 1
  SHARED(C(TYPE), shared, LANES);
#else
  if (row >= rows) return;
#endif
  const size_t begin = (size_t)(row / inner) * n * inner + row % inner;
  x += begin;
  y += begin;
#if KIND < 3
  C(TYPE) most = -INFINITY;
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner);
    most = GREATER(most, v);
  }
#if LANES > 1
  most = greatest(most, shared);
#endif
#endif

#if KIND == 2
  int first = n;
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner);
    if (first == n && (v == most || v != v)) first = i;
  }
#if LANES > 1
  SHARED(int, positions, LANES);
  first = earliest(first, positions);
#endif
  for (int i = lane; i < n; i += LANES) STORE(TYPE, y, i * inner, i == first ? 1 : 0);
#else
  C(TYPE) sum = 0;
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner);
#if KIND == 3
    sum += fabs(v);
#elif KIND == 4
    sum += v * v;
#else
    sum += exp(v - most);
#endif
  }
#if LANES > 1
  sum = sum_of(sum, shared);
#endif
#if KIND == 4
  sum = sqrt(sum);
#elif KIND == 1
  sum = log(sum);
#endif
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i * inner);
#if KIND == 0
    STORE(TYPE, y, i * inner, exp(v - most) / sum);
#elif KIND == 1
    STORE(TYPE, y, i * inner, v - most - sum);
#else
    STORE(TYPE, y, i * inner, sum == 0 ? 0 : v / sum);
#endif
  }
#endif
}
