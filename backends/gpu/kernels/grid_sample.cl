// SPDX-License-Identifier: Apache-2.0
// y[n][channel][i] is the image x[n][channel][d][h][w], sampled at grid[n][i]. A grid element has DIMS coordinates from
// -1 to 1, in the order w, h, d. TYPE is the element type. FILTER: 0 nearest, 1 linear, 2 cubic. PADDING: 0 zeros, 1
// border, 2 reflection. ALIGN: -1 and 1 are the centers of the outermost elements instead of their edges.
#define TAPS (FILTER == 0 ? 1 : FILTER == 1 ? 2 : 4)

// Reflects x at both ends of the image until it is inside.
inline float reflected(float x, int n) {
#ifdef ALIGN
  const float low = 0, range = n - 1;
#else
  const float low = -0.5f, range = n;
#endif
  if (range <= 0) return low;
  const float away = fabs(x - low), turns = floor(away / range), rest = away - turns * range;
  return fmod(turns, 2.0f) == 0 ? low + rest : low + range - rest;
}

// Computes, for coordinate `at` along n elements, the positions to interpolate between and their weights. Position -1
// stands for a zero.
inline void taps(float at, int n, int* positions, float* weights) {
#ifdef ALIGN
  float x = (at + 1) / 2 * (n - 1);
#else
  float x = ((at + 1) * n - 1) / 2;
#endif
  x = isnan(x) ? -1e9f : clamp(x, -1e9f, 1e9f);
#if FILTER == 0
  x = rint(x);
#endif
#if PADDING == 2
  x = reflected(x, n);
#endif
  const float base = floor(x), t = x - base;
#if FILTER == 0
  weights[0] = 1;
  const int first = 0;
#elif FILTER == 1
  weights[0] = 1 - t;
  weights[1] = t;
  const int first = 0;
#else
  const float a = -0.75f, u = 1 - t;
  weights[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
  weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  weights[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
  weights[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
  const int first = -1;
#endif
  for (int k = 0; k < TAPS; ++k) {
    float position = (FILTER == 0 ? x : base + first + k);
#if PADDING == 2
    position = reflected(position, n);
#endif
#if PADDING == 0
    positions[k] = position < 0 || position > n - 1 ? -1 : (int)position;
#else
    positions[k] = (int)clamp(position, 0.0f, (float)(n - 1));
#endif
  }
}

kernel void grid_sample(GLOBAL const S(TYPE)* x, GLOBAL const S(TYPE)* grid, GLOBAL S(TYPE)* y, int total, int channels,
                        int d, int h, int w, int count) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int position = i % count, n = i / (count * channels);
  x += (size_t)(i / count) * d * h * w;
  const int extents[3] = {w, h, d};
  int positions[3][4] = {{0}};
  float weights[3][4];
  for (int k = 0; k < DIMS; ++k)
    taps(LOAD(TYPE, grid, (n * count + position) * DIMS + k), extents[k], positions[k], weights[k]);
  C(TYPE) sum = 0;
  for (int a = 0; a < (DIMS == 3 ? TAPS : 1); ++a) {
    for (int b = 0; b < TAPS; ++b) {
      for (int c = 0; c < TAPS; ++c) {
        if (positions[2][a] < 0 || positions[1][b] < 0 || positions[0][c] < 0) continue;
        const float weight = weights[0][c] * weights[1][b] * (DIMS == 3 ? weights[2][a] : 1);
        sum += weight * LOAD(TYPE, x, (positions[2][a] * h + positions[1][b]) * w + positions[0][c]);
      }
    }
  }
  STORE(TYPE, y, i, sum);
}
