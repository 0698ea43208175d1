// SPDX-License-Identifier: Apache-2.0
// Keeps the elements (of TYPE) of each matrix that are on or below diagonal k, or with UPPER on or above it; zeroes the
// rest.
kernel void triangle(GLOBAL const S(TYPE)* x, GLOBAL const long* k, GLOBAL S(TYPE)* y, int total, int rows,
                     int columns) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const long diagonal = (long)(i % columns) - i / columns % rows;
#ifdef UPPER
  y[i] = diagonal >= k[0] ? x[i] : 0;
#else
  y[i] = diagonal <= k[0] ? x[i] : 0;
#endif
}

// 1 on diagonal k, 0 elsewhere.
kernel void diagonal(GLOBAL S(TYPE)* y, int total, int columns, int k) {
  const int i = (int)get_global_id(0);
  if (i < total) STORE(TYPE, y, i, i % columns - i / columns == k ? 1 : 0);
}
