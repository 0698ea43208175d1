// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 × 3 windows by Winograd's F(2 × 2, 3 × 3), as in Lavin and Gray (2015): 16 products of matrices for
// tiles of 2 × 2 positions need 4 multiplications per position instead of 9. Every step is exact for small integers.
// kernels/polyphase.cl has split x by 2 into phases, and tile (ty, tx) has number p = ty * width + tx. `width` is one
// more than the number of tiles in a line; the extra tile between two lines is computed but not stored. Element (i, j)
// of tile p is element p + i / 2 * width + j / 2 of phase (i % 2, j % 2).
//
// VECTOR    tiles that a work item transforms
// PANEL     tiles in a panel of matrix B (kernels/gemm.cl); the last panel is moved back to end with the tiles
// OUT, BIAS, EPILOGUE, EPILOGUE_PARAMETERS: as in kernels/gemm.cl
#if VECTOR == 1
typedef float vector_t;
#define READ(p, i) (p)[i]
#define WRITE(v, p, i) (p)[i] = (v)
#else
typedef FLOATS(VECTOR) vector_t;
#define READ(p, i) FLOATS_OF(VECTOR, (p) + (i))
#define WRITE(v, p, i) FLOATS_TO(VECTOR, v, (p) + (i))
#endif
#ifndef OUT
#define OUT f32
#endif
#ifdef EPILOGUE
#define ENDED EPILOGUE
#else
#define EPILOGUE_PARAMETERS
#define ENDED(v, at, row, column) (v)
#endif

// u[i][j][count] = G w Gᵀ of w[count][3][3].
kernel void winograd_weights(GLOBAL const float* w, GLOBAL float* u, int count) {
  const int at = (int)get_global_id(0);
  if (at >= count) return;
  w += at * 9;
  float rows[4][3];
  for (int j = 0; j < 3; ++j) {
    const float a = w[j], b = w[3 + j], c = w[6 + j];
    rows[0][j] = a;
    rows[1][j] = (a + b + c) * 0.5f;
    rows[2][j] = (a - b + c) * 0.5f;
    rows[3][j] = c;
  }
  for (int i = 0; i < 4; ++i) {
    const float a = rows[i][0], b = rows[i][1], c = rows[i][2];
    const float all[4] = {a, (a + b + c) * 0.5f, (a - b + c) * 0.5f, c};
    for (int j = 0; j < 4; ++j) u[(i * 4 + j) * count + at] = all[j];
  }
}

// v[n][i][j][channels][tiles] = Bᵀ x B of x[n][channels][phases][phase].
kernel void winograd_input(GLOBAL const float* restrict x, GLOBAL float* restrict v, int channels, int tiles, int phase,
                           int width) {
  const int channel = (int)get_global_id(1), n = (int)get_global_id(2);
#ifdef PANEL
  const int panel = (int)get_global_id(0) * VECTOR / PANEL, within = (int)get_global_id(0) * VECTOR % PANEL;
  if (panel * PANEL >= tiles || channel >= channels) return;
  const int first = min(panel * PANEL, tiles - PANEL) + within;
  const int matrix = channels * ((tiles + PANEL - 1) / PANEL * PANEL);
  v += (panel * channels + channel) * PANEL + within;
#else
  const int first = min((int)get_global_id(0) * VECTOR, tiles - VECTOR);
  if ((int)get_global_id(0) * VECTOR >= tiles || channel >= channels) return;
  const int matrix = channels * tiles;
  v += channel * tiles + first;
#endif
  v += (size_t)n * 16 * matrix;
  x += (size_t)(n * channels + channel) * 4 * phase + first;
  vector_t rows[4][4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    GLOBAL const float* column = x + j % 2 * phase + j / 2;
    const vector_t a = READ(column, 0), b = READ(column, 2 * phase), c = READ(column, width),
                   d = READ(column, 2 * phase + width);
    rows[0][j] = a - c;
    rows[1][j] = b + c;
    rows[2][j] = c - b;
    rows[3][j] = b - d;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    WRITE(rows[i][0] - rows[i][2], v, (size_t)(i * 4) * matrix);
    WRITE(rows[i][1] + rows[i][2], v, (size_t)(i * 4 + 1) * matrix);
    WRITE(rows[i][2] - rows[i][1], v, (size_t)(i * 4 + 2) * matrix);
    WRITE(rows[i][1] - rows[i][3], v, (size_t)(i * 4 + 3) * matrix);
  }
}

// y[n][maps][oh][ow] = Aᵀ m A + bias of m[n][i][j][maps][tiles].
kernel void winograd_output(GLOBAL const float* restrict m, GLOBAL const float* bias, GLOBAL S(OUT)* y, int maps,
                            int tiles, int width, int oh, int ow EPILOGUE_PARAMETERS) {
  const int ty = (int)get_global_id(1), plane = (int)get_global_id(2), map = plane % maps;
  const int tx = min((int)get_global_id(0) * VECTOR, (ow + 1) / 2 - VECTOR);
  if ((int)get_global_id(0) * VECTOR * 2 >= ow || ty * 2 >= oh) return;
  m += ((size_t)(plane / maps) * 16 * maps + map) * tiles + ty * width + tx;
  const size_t matrix = (size_t)maps * tiles;
  vector_t rows[2][4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const vector_t a = READ(m, j * matrix), b = READ(m, (4 + j) * matrix), c = READ(m, (8 + j) * matrix),
                   d = READ(m, (12 + j) * matrix);
    rows[0][j] = a + b + c;
    rows[1][j] = b - c - d;
  }
  const float shift = BIAS ? bias[map] : 0;
  for (int i = 0; i < 2 && ty * 2 + i < oh; ++i) {
    float even[VECTOR], odd[VECTOR];
    WRITE(rows[i][0] + rows[i][1] + rows[i][2] + shift, even, 0);
    WRITE(rows[i][1] - rows[i][2] - rows[i][3] + shift, odd, 0);
    const int position = (ty * 2 + i) * ow + 2 * tx, at = plane * oh * ow + position;
    if (2 * tx + 2 * VECTOR <= ow) {
      // Computes all results before storing any, so that the loops vectorize.
      C(OUT) results[2 * VECTOR];
#pragma unroll
      for (int l = 0; l < 2 * VECTOR; ++l) {
        const float sum = l % 2 ? odd[l / 2] : even[l / 2];
        results[l] = ENDED(sum, at + l, map, position + l);
      }
#pragma unroll
      for (int l = 0; l < 2 * VECTOR; ++l) STORE(OUT, y, at + l, results[l]);
    } else {
      for (int l = 0; 2 * tx + l < ow; ++l) {
        const float sum = l % 2 ? odd[l / 2] : even[l / 2];
        STORE(OUT, y, at + l, ENDED(sum, at + l, map, position + l));
      }
    }
  }
}
