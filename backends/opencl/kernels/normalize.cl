// SPDX-License-Identifier: Apache-2.0
// (x - mean) / sqrt(variance + epsilon) · scale + shift over rows of n neighbours. TYPE; LANES work items share a row;
// CENTERED: less the mean; SCALE, SHIFT: of type SCALE_TYPE, element `row % period * step + i / span`; MEAN, DEVIATION:
// written out, one a row, in fp32.
#if LANES > 1
JOINED(sum_of, C(TYPE), a + b)
#endif

kernel void normalize_rows(global const S(TYPE)* x, global const S(SCALE_TYPE)* scale,
                           global const S(SCALE_TYPE)* shift, global S(TYPE)* y, global float* means,
                           global float* deviations, int rows, int n, int period, int step, int span, float epsilon) {
  const int row = (int)get_global_id(0) / LANES, lane = (int)get_global_id(0) % LANES;
#if LANES > 1
  local C(TYPE) shared[LANES];
#else
  if (row >= rows) return;
#endif
  x += (size_t)row * n;
  y += (size_t)row * n;
  C(TYPE) mean = 0;
#ifdef CENTERED
  for (int i = lane; i < n; i += LANES) mean += LOAD(TYPE, x, i);
#if LANES > 1
  mean = sum_of(mean, shared);
#endif
  mean /= n;
#endif
  C(TYPE) squares = 0;
  for (int i = lane; i < n; i += LANES) {
    const C(TYPE) v = LOAD(TYPE, x, i) - mean;
    squares += v * v;
  }
#if LANES > 1
  squares = sum_of(squares, shared);
#endif
  const C(TYPE) factor = 1 / sqrt(squares / n + epsilon);
  const int first = row % period * step;
  for (int i = lane; i < n; i += LANES) {
    C(TYPE) v = (LOAD(TYPE, x, i) - mean) * factor;
#ifdef SCALE
    v *= LOAD(SCALE_TYPE, scale, first + i / span);
#endif
#ifdef SHIFT
    v += LOAD(SCALE_TYPE, shift, first + i / span);
#endif
    STORE(TYPE, y, i, v);
  }
#ifdef MEAN
  if (lane == 0) means[row] = mean;
#endif
#ifdef DEVIATION
  if (lane == 0) deviations[row] = factor;
#endif
}
