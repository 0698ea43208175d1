// SPDX-License-Identifier: Apache-2.0
// y = (x - mean) / sqrt(variance + epsilon) · scale + shift, over rows of n elements. LANES work items share a row, each
// with WIDE partial sums.
//
// TYPE, OUT         the types of x and y
// CENTERED          subtracts the mean; without it, 0 is used instead of the mean
// SCALE, SHIFT      multiplies by a scale, adds a shift; both of SCALE_TYPE, one for each element of a row
// BY_CHANNEL        one scale and one shift for each channel of `span` elements; a row has n / span channels, and the
//                   scale and shift of its first channel have the index row % period * (n / span)
// MEAN              writes each row's mean in fp32
// DEVIATION         writes each row's factor 1 / sqrt(variance + epsilon) in fp32
#if LANES > 1
JOINED(sum_of, C(TYPE), a + b)
#endif

// Adds to `result` this item's share of the sum of TERM over a row's elements v.
#define SUM(result, TERM)                                                                     \
  do {                                                                                        \
    C(TYPE) parts[WIDE];                                                                      \
    for (int l = 0; l < WIDE; ++l) parts[l] = 0;                                              \
    for (int i = lane * WIDE; i + WIDE <= n; i += LANES * WIDE) {                             \
      for (int l = 0; l < WIDE; ++l) {                                                        \
        const C(TYPE) v = LOAD(TYPE, x, i + l);                                               \
        parts[l] += TERM;                                                                     \
      }                                                                                       \
    }                                                                                         \
    for (int i = n / WIDE * WIDE + lane; i < n; i += LANES) {                                 \
      const C(TYPE) v = LOAD(TYPE, x, i);                                                     \
      parts[0] += TERM;                                                                       \
    }                                                                                         \
    for (int l = 0; l < WIDE; ++l) result += parts[l];                                        \
  } while (0)

kernel void normalize_rows(GLOBAL const S(TYPE)* restrict x, GLOBAL const S(SCALE_TYPE)* scale,
                           GLOBAL const S(SCALE_TYPE)* shift, GLOBAL S(OUT)* restrict y, GLOBAL float* means,
                           GLOBAL float* deviations, int rows, int n, int period, int span, float epsilon) {
  const int row = (int)get_global_id(0) / LANES, lane = (int)get_global_id(0) % LANES;
#if LANES > 1
  SHARED(C(TYPE), shared, LANES);
#else
  if (row >= rows) return;
#endif
  x += (size_t)row * n;
  y += (size_t)row * n;
  C(TYPE) mean = 0;
#ifdef CENTERED
  SUM(mean, v);
#if LANES > 1
  mean = sum_of(mean, shared);
#endif
  mean /= n;
#endif
  C(TYPE) squares = 0;
  SUM(squares, (v - mean) * (v - mean));
#if LANES > 1
  squares = sum_of(squares, shared);
#endif
  const C(TYPE) factor = 1 / sqrt(squares / n + epsilon);
#ifdef BY_CHANNEL
  const int channels = n / span, first = row % period * channels;
  for (int c = 0; c < channels; ++c) {
    const C(SCALE_TYPE) s = LOAD(SCALE_TYPE, scale, first + c), t = LOAD(SCALE_TYPE, shift, first + c);
    for (int i = c * span + lane; i < (c + 1) * span; i += LANES)
      STORE(OUT, y, i, (LOAD(TYPE, x, i) - mean) * factor * s + t);
  }
#else
  for (int i = lane; i < n; i += LANES) {
    C(OUT) v = (LOAD(TYPE, x, i) - mean) * factor;
#ifdef SCALE
    v *= LOAD(SCALE_TYPE, scale, i);
#endif
#ifdef SHIFT
    v += LOAD(SCALE_TYPE, shift, i);
#endif
    STORE(OUT, y, i, v);
  }
#endif
#ifdef MEAN
  if (lane == 0) means[row] = mean;
#endif
#ifdef DEVIATION
  if (lane == 0) deviations[row] = factor;
#endif
}
