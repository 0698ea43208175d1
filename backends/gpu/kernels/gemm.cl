// SPDX-License-Identifier: Apache-2.0
// y[b] = alpha * A[b] B[b] + bias, all row-major: A is m × k, B is k × n. A line is a row of B; a tile is the part of y
// that a work item computes.
//
// TYPE      type of A, B and the bias
// OUT       type of y; TYPE by default
// BIAS      0: no bias; 1: one for each row; 2: one for each column
// ALPHA     the factor alpha; 1 by default
// ROWS      rows of a tile
// VECTOR    columns in a vector; 1 for types other than f32
// COLUMNS   vectors in a row of a tile
// INTEGER   TYPE is an integer type: multiplies and adds instead of calling fma
// DEPTH     columns of A and lines of B that are in local memory at a time, for a group of GROUP_ROWS × GROUP_COLUMNS
//           work items. Without DEPTH, each item reads global memory, and tiles at the edges are moved back to end with
//           the matrix: where two tiles overlap, both compute the same results. The host chooses tiles no larger than y.
// WINDOWS   B is not stored: its line (c, kd, kh, kw) is channel c of x in the layout of kernels/polyphase.cl, starting
//           at the first position of the window's tap (kd, kh, kw). KERNEL_*, STRIDE_*, DILATION_* and PHASES_* for D,
//           H, W describe the window.
// GAPS      with WINDOWS: the columns are all positions of x; positions past the ends of y's image rows are not stored.
//           Without GAPS, a tile is within one image row of y.
// PANELS    B is stored in panels: blocks of columns as wide as a tile, each stored line after line. The last panel is
//           moved back to end with the matrix, as tiles are.
// EPILOGUE  EPILOGUE(v, at, row, column) is the element to store in y[at] for the sum v; `row` is the index into a bias
//           with one element per row, `column` into one with one element per column. EPILOGUE_PARAMETERS are the kernel
//           parameters that EPILOGUE uses (engine/epilogue.cpp).
#if VECTOR == 1
typedef C(TYPE) vector_t;
#define READ(p, i) LOAD(TYPE, p, i)
#define READ_LOCAL(p) (*(p))
#define WRITE(v, p, i) STORE(OUT, p, i, v)
#define SPREAD(v, lanes) (lanes)[0] = v
#else
typedef FLOATS(VECTOR) vector_t;
#define READ(p, i) FLOATS_OF(VECTOR, (p) + (i))
#define READ_LOCAL(p) FLOATS_OF(VECTOR, p)
#define WRITE(v, p, i) FLOATS_TO(VECTOR, v, (p) + (i))
#define SPREAD(v, lanes) FLOATS_TO(VECTOR, v, lanes)
#endif

#ifdef INTEGER
#define MAD(a, b, c) ((vector_t)((a) * (b) + (c)))
#else
#define MAD(a, b, c) fma((vector_t)(a), b, c)
#endif

#ifndef OUT
#define OUT TYPE
#endif
#ifndef EPILOGUE
#define EPILOGUE_PARAMETERS
#endif

#ifdef WINDOWS
#define TAPS (KERNEL_D * KERNEL_H * KERNEL_W)
// PHASE is the index of the phase that a tap reads, TAP the offset of the tap's line in its channel.
#define PHASE(kd, kh, kw)                                                                                           \
  ((((kd) * DILATION_D % STRIDE_D) * PHASES_H + (kh) * DILATION_H % STRIDE_H) * PHASES_W + (kw) * DILATION_W % STRIDE_W)
#define TAP(kd, kh, kw)                                                                                           \
  (PHASE(kd, kh, kw) * phase + (kd) * DILATION_D / STRIDE_D * slice + (kh) * DILATION_H / STRIDE_H * width + \
   (kw) * DILATION_W / STRIDE_W)
#endif

#ifdef DEPTH
#define STEP (GROUP_COLUMNS * VECTOR)
#define TILE_ROWS (GROUP_ROWS * ROWS)
#define TILE_COLUMNS (GROUP_COLUMNS * VECTOR * COLUMNS)
#else
#define STEP VECTOR
#endif

#if defined(DEPTH) || defined(GAPS)
#define PLACES
#endif

#ifndef DEPTH
// Adds one line of B, times the factors from A, to the sums of a tile.
inline void add_line(vector_t sum[ROWS][COLUMNS], GLOBAL const S(TYPE)* a, GLOBAL const S(TYPE)* line, int k) {
  vector_t values[COLUMNS];
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) values[c] = READ(line, c * VECTOR);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const C(TYPE) factor = LOAD(TYPE, a, r * k);
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) sum[r][c] = MAD(factor, values[c], sum[r][c]);
  }
}
#endif

// Batch b uses matrix b % a_count of A and b % b_count of B. WINDOWS: x has phases of `phase` elements, slices of
// `slice` elements and image rows of `width` elements; a slice of y has oh image rows of ow elements, and a row of the
// matrix y has `pitch` elements.
kernel void gemm(GLOBAL const S(TYPE)* a, GLOBAL const S(TYPE)* b, GLOBAL const S(TYPE)* bias, GLOBAL S(OUT)* y, int m,
                 int n, int k, int a_count, int b_count
#ifdef WINDOWS
                 ,
                 int phase, int slice, int width, int oh, int ow, int pitch
#endif
                     EPILOGUE_PARAMETERS) {
  const int batch = (int)get_global_id(2);
  a += (size_t)(batch % a_count) * m * k;
#ifdef WINDOWS
  const int channel = PHASES_D * PHASES_H * PHASES_W * phase;
  b += (size_t)(batch % b_count) * (k / TAPS) * channel;
#else
  const int pitch = n;
#ifdef PANELS
  const int line = VECTOR * COLUMNS;
  b += (size_t)(batch % b_count) * k * ((n + line - 1) / line * line) + get_global_id(1) * k * line;
#else
  const int line = n;
  b += (size_t)(batch % b_count) * k * n;
#endif
#endif

#ifdef DEPTH
  const int group_row = (int)get_group_id(1) * TILE_ROWS, group_column = (int)get_group_id(0) * TILE_COLUMNS;
  const int row = group_row + (int)get_local_id(1) * ROWS;
  const int column = group_column + (int)get_local_id(0) * VECTOR;
#else
  const int row = min((int)get_global_id(0) * ROWS, m - ROWS);
#if defined(WINDOWS) && !defined(GAPS)
  const int tiles = (ow + VECTOR * COLUMNS - 1) / (VECTOR * COLUMNS);
  const int line_of = (int)get_global_id(1) / tiles;
  const int first = min((int)get_global_id(1) % tiles * VECTOR * COLUMNS, ow - VECTOR * COLUMNS);
  const int column = line_of * ow + first;
  b += line_of / oh * slice + line_of % oh * width + first;
#else
  const int column = min((int)get_global_id(1) * VECTOR * COLUMNS, n - VECTOR * COLUMNS);
#ifndef PANELS
  b += column;
#endif
#endif
#endif

  vector_t sum[ROWS][COLUMNS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) sum[r][c] = (vector_t)(0);
  }

#ifdef DEPTH
  SHARED(C(TYPE), tile_a, DEPTH * TILE_ROWS);
  SHARED(C(TYPE), tile_b, DEPTH * TILE_COLUMNS);
  const int item = (int)get_local_id(1) * GROUP_COLUMNS + (int)get_local_id(0);
  for (int begin = 0; begin < k; begin += DEPTH) {
    for (int e = item; e < DEPTH * TILE_ROWS; e += GROUP_ROWS * GROUP_COLUMNS) {
      const int r = min(group_row + e / DEPTH, m - 1), i = begin + e % DEPTH;
      tile_a[e % DEPTH * TILE_ROWS + e / DEPTH] = i < k ? LOAD(TYPE, a, r * k + i) : 0;
    }
    for (int e = item; e < DEPTH * TILE_COLUMNS; e += GROUP_ROWS * GROUP_COLUMNS) {
      const int i = begin + e / TILE_COLUMNS, j = min(group_column + e % TILE_COLUMNS, n - 1);
#ifdef WINDOWS
      const int tap = i % TAPS;
      const int at = i / TAPS * channel +
                     TAP(tap / (KERNEL_W * KERNEL_H), tap / KERNEL_W % KERNEL_H, tap % KERNEL_W) + j;
#else
      const int at = i * n + j;
#endif
      tile_b[e] = i < k ? LOAD(TYPE, b, at) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < DEPTH; ++i) {
      vector_t values[COLUMNS];
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c)
        values[c] = READ_LOCAL(tile_b + i * TILE_COLUMNS + c * STEP + (int)get_local_id(0) * VECTOR);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const C(TYPE) factor = tile_a[i * TILE_ROWS + (int)get_local_id(1) * ROWS + r];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sum[r][c] = MAD(factor, values[c], sum[r][c]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#else
  GLOBAL const S(TYPE)* factors = a + (size_t)row * k;
#ifdef WINDOWS
  for (int c = 0; c < k / TAPS; ++c) {
    for (int kd = 0; kd < KERNEL_D; ++kd) {
      for (int kh = 0; kh < KERNEL_H; ++kh) {
        for (int kw = 0; kw < KERNEL_W; ++kw) add_line(sum, factors++, b + c * channel + TAP(kd, kh, kw), k);
      }
    }
  }
#else
  for (int i = 0; i < k; ++i) add_line(sum, factors + i, b + i * line, k);
#endif
#endif

#ifdef PLACES
  // For each column of the tile, its position in a row of y, or -1 if it is not stored.
  int positions[COLUMNS * VECTOR];
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
    const int first = column + c * STEP;
#ifdef GAPS
    int x_of = first % slice % width, y_of = first % slice / width, z_of = first / slice;
    for (int l = 0; l < VECTOR; ++l) {
      positions[c * VECTOR + l] = first + l < n && x_of < ow && y_of < oh ? (z_of * oh + y_of) * ow + x_of : -1;
      if (++x_of == width) x_of = 0, ++y_of;
      if (y_of * width == slice) y_of = 0, ++z_of;
    }
#else
    for (int l = 0; l < VECTOR; ++l) positions[c * VECTOR + l] = first + l < n ? first + l : -1;
#endif
  }
#endif

#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#ifdef DEPTH
    if (row + r >= m) break;
#endif
    const int bias_row = batch % a_count * m + row + r;
    const size_t line_y = ((size_t)batch * m + row + r) * pitch;
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      vector_t v = sum[r][c];
#ifdef ALPHA
      v *= ALPHA;
#endif
#if BIAS == 1
      v += (vector_t)LOAD(TYPE, bias, bias_row);
#endif
#ifdef PLACES
      const int from = positions[c * VECTOR];
      if (from < 0 || positions[c * VECTOR + VECTOR - 1] != from + VECTOR - 1) {
        C(TYPE) lanes[VECTOR];
        SPREAD(v, lanes);
        for (int l = 0; l < VECTOR; ++l) {
          const int position = positions[c * VECTOR + l];
          if (position < 0) continue;
          C(TYPE) value = lanes[l];
#if BIAS == 2
          value += LOAD(TYPE, bias, position);
#endif
#ifdef EPILOGUE
          STORE(OUT, y, line_y + position, EPILOGUE(value, line_y + position, bias_row, position));
#else
          STORE(OUT, y, line_y + position, value);
#endif
        }
        continue;
      }
#else
      const int from = column + c * STEP;
#endif
#if BIAS == 2
      v += READ(bias, from);
#endif
#ifdef EPILOGUE
      C(TYPE) lanes[VECTOR];
      SPREAD(v, lanes);
      for (int l = 0; l < VECTOR; ++l)
        STORE(OUT, y, line_y + from + l, EPILOGUE(lanes[l], line_y + from + l, bias_row, from + l));
#else
      WRITE(v, y, line_y + from);
#endif
    }
  }
}
