// SPDX-License-Identifier: Apache-2.0
// Kernels that measure a device's peak throughput (engine/throughput.cpp). VECTOR: floats in a vector.
typedef FLOATS(VECTOR) vector_t;

// Each work item computes 16 independent chains of n multiply-adds of vectors.
kernel void arithmetic(GLOBAL float* y, int n, float a, float b) {
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
  FLOATS_TO(VECTOR, all, y + get_global_id(0) * VECTOR);
}

kernel void stream(GLOBAL const float* restrict x, GLOBAL float* restrict y) {
  const size_t i = get_global_id(0) * VECTOR;
  FLOATS_TO(VECTOR, FLOATS_OF(VECTOR, x + i), y + i);
}
