// SPDX-License-Identifier: Apache-2.0
// Softmax of rows of n contiguous fp32 elements, for devices whose work items have vector registers: one item per row.
// KIND: 0 softmax, 1 the logarithm of softmax. VECTOR: floats in a register.
typedef FLOATS(VECTOR) vector_t;
#define READ(p, i) FLOATS_OF(VECTOR, (p) + (i))
#define WRITE(v, p, i) FLOATS_TO(VECTOR, v, (p) + (i))

kernel void softmax_vector(GLOBAL const float* restrict x, GLOBAL float* restrict y, int rows, int n) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  x += (size_t)row * n;
  y += (size_t)row * n;
  const int whole = n / VECTOR * VECTOR;
  float lanes[VECTOR];

  vector_t high = (vector_t)(-INFINITY);
  for (int i = 0; i < whole; i += VECTOR) {
    const vector_t v = READ(x, i);
    high = select(high, v, isnan(v) | (v > high));  // a NaN in `high` stays, as no comparison with it is true
  }
  WRITE(high, lanes, 0);
  float most = -INFINITY;
  for (int l = 0; l < VECTOR; ++l) most = GREATER(lanes[l], most);
  for (int i = whole; i < n; ++i) most = GREATER(x[i], most);

  vector_t sums = (vector_t)(0);
  for (int i = 0; i < whole; i += VECTOR) {
    const vector_t v = exp(READ(x, i) - most);
    sums += v;
#if KIND == 0
    WRITE(v, y, i);
#endif
  }
  WRITE(sums, lanes, 0);
  float sum = 0;
  for (int l = 0; l < VECTOR; ++l) sum += lanes[l];
  for (int i = whole; i < n; ++i) {
    const float v = exp(x[i] - most);
    sum += v;
#if KIND == 0
    y[i] = v;
#endif
  }
#if KIND == 0
  for (int i = 0; i < whole; i += VECTOR) WRITE(READ(y, i) / sum, y, i);
  for (int i = whole; i < n; ++i) y[i] /= sum;
#else
  const float logarithm = log(sum);
  for (int i = 0; i < whole; i += VECTOR) WRITE(READ(x, i) - most - logarithm, y, i);
  for (int i = whole; i < n; ++i) y[i] = x[i] - most - logarithm;
#endif
}
