// SPDX-License-Identifier: Apache-2.0
// y[b] = alpha * A[b] B[b] + bias, all row-major: A is m × k, B is k × n.
//
// TYPE      of all three; BIAS 0 none, 1 one for each row, 2 one for each column; ALPHA a factor, where there is one
// ROWS      of y that a work item computes
// VECTOR    columns of a vector, COLUMNS vectors that a work item computes; 1 for types other than f32
//
// At the edges a work item's tile is moved back so that it ends with the matrix: the elements that two work items
// compute come out the same. The host chooses tiles that are no larger than the matrix.
#if VECTOR == 1
typedef C(TYPE) vector_t;
#define READ(p, i) LOAD(TYPE, p, i)
#define WRITE(v, p, i) STORE(TYPE, p, i, v)
#else
typedef CAT(float, VECTOR) vector_t;
#define READ(p, i) CAT(vload, VECTOR)(0, (p) + (i))
#define WRITE(v, p, i) CAT(vstore, VECTOR)(v, 0, (p) + (i))
#endif

#ifdef INTEGER
#define MAD(a, b, c) ((vector_t)((a) * (b) + (c)))
#else
#define MAD(a, b, c) fma((vector_t)(a), b, c)
#endif

// Batch b uses matrix (b / x_repeat) % x_count of A and B.
kernel void gemm(global const S(TYPE)* a, global const S(TYPE)* b, global const S(TYPE)* bias, global S(TYPE)* y, int m,
                 int n, int k, int a_count, int b_count) {
  const int row = min((int)get_global_id(0) * ROWS, m - ROWS);
  const int column = min((int)get_global_id(1) * VECTOR * COLUMNS, n - VECTOR * COLUMNS);
  const int batch = (int)get_global_id(2);
  a += (size_t)(batch % a_count) * m * k + (size_t)row * k;
  b += (size_t)(batch % b_count) * k * n + column;
  y += (size_t)batch * m * n + (size_t)row * n + column;

  vector_t sum[ROWS][COLUMNS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) sum[r][c] = (vector_t)(0);
  }
  for (int i = 0; i < k; ++i) {
    vector_t line[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) line[c] = READ(b, i * n + c * VECTOR);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const C(TYPE) factor = LOAD(TYPE, a, r * k + i);
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c) sum[r][c] = MAD(factor, line[c], sum[r][c]);
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      vector_t v = sum[r][c];
#ifdef ALPHA
      v *= ALPHA;
#endif
#if BIAS == 1
      v += (vector_t)LOAD(TYPE, bias, (batch % a_count) * m + row + r);
#elif BIAS == 2
      v += READ(bias, column + c * VECTOR);
#endif
      WRITE(v, y, r * n + c * VECTOR);
    }
  }
}
