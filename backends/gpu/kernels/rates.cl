// SPDX-License-Identifier: Apache-2.0
// What a device can do at best (engine/rates.cpp). VECTOR: floats of a vector.
typedef CAT(float, VECTOR) vector_t;

// 16 chains of multiply-adds, n long, none of which waits for another.
kernel void arithmetic(global float* y, int n, float a, float b) {
  vector_t sums[16];
#pragma unroll
  for (int j = 0; j < 16; ++j) sums[j] = (vector_t)(a * j);
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j) sums[j] = fma(sums[j], (vector_t)(a), (vector_t)(b));
  }
  vector_t all = sums[0];
#pragma unroll
  for (int j = 1; j < 16; ++j) all += sums[j];
  CAT(vstore, VECTOR)(all, get_global_id(0), y);
}

kernel void stream(global const float* restrict x, global float* restrict y) {
  const size_t i = get_global_id(0);
  CAT(vstore, VECTOR)(CAT(vload, VECTOR)(i, x), i, y);
}
