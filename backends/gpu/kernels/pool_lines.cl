// SPDX-License-Identifier: Apache-2.0
// The pools of kernels/pool.cl for devices whose work items have vector registers. A work item computes LINE adjacent
// elements of y. It visits the window line by line; within a line of x, it checks positions only near the two ends.
// KIND: 0 maximum, 1 average, 2 average that counts the padding. LEAST is the lowest value of TYPE.

// The first position of y, along one axis, whose window begins at or after position `at` of x. `padding` is the padding at
// the beginning of the axis.
inline int position_from(int at, int padding, int stride) {
  const int distance = at + padding;
  return distance <= 0 ? 0 : (distance + stride - 1) / stride;
}

// The distance from the first tap of a window to its last, in whole strides.
#define REACH ((KERNEL_W - 1) * DILATION_W / STRIDE_W)

#if KIND == 0
#define JOIN(a, v) (v > a || v != v ? v : a)
#define ENDED(a, taps) (a)
#else
#define JOIN(a, v) (a + v)
#define ENDED(a, taps) (a / max(taps, 1))
#endif

// Combines `result` with the taps of a window that begins at `ix`, as far as they are within a line of w elements.
inline C(TYPE) with_line(C(TYPE) result, GLOBAL const S(TYPE)* line, int ix, int w) {
  for (int kw = 0; kw < KERNEL_W; ++kw, ix += DILATION_W) {
    if (ix < 0 || ix >= w) continue;
    const C(TYPE) v = LOAD(TYPE, line, ix);
    result = JOIN(result, v);
  }
  return result;
}

// How many of the `taps` taps of a window that begins at position `begin` are at positions in [0, end) of an axis.
inline int taps_inside(int begin, int end, int taps, int dilation) {
  int count = 0;
  for (int k = 0; k < taps; ++k) count += begin + k * dilation >= 0 && begin + k * dilation < end;
  return count;
}

kernel void pool_lines(GLOBAL const S(TYPE)* restrict x, GLOBAL S(TYPE)* restrict y, int d, int h, int w, int od, int oh,
                       int ow, int end_d, int end_h, int end_w) {
  const int first = (int)get_global_id(0) * LINE, oy = (int)get_global_id(1);
  const int outer = (int)get_global_id(2);  // (n·c, od)
  if (first >= ow || oy >= oh) return;
  const int count = min(LINE, ow - first);
  const int z = outer % od * STRIDE_D - PAD_D, begin = oy * STRIDE_H - PAD_H;
  x += (size_t)(outer / od) * d * h * w;
  y += (size_t)(outer * oh + oy) * ow + first;
  C(TYPE) results[LINE];
  for (int o = 0; o < count; ++o) results[o] = KIND == 0 ? LEAST : 0;
  // For outputs [from, to), all taps of the window are within x's line.
  const int from = min(max(position_from(0, PAD_W, STRIDE_W) - first, 0), count);
  const int to = min(max(position_from(w - (KERNEL_W - 1) * DILATION_W, PAD_W, STRIDE_W) - first, from), count);
  for (int kd = 0; kd < KERNEL_D; ++kd) {
    const int iz = z + kd * DILATION_D;
    if (iz < 0 || iz >= d) continue;
    for (int kh = 0; kh < KERNEL_H; ++kh) {
      const int iy = begin + kh * DILATION_H;
      if (iy < 0 || iy >= h) continue;
      const int line = (iz * h + iy) * w, shift = first * STRIDE_W - PAD_W;
      for (int o = 0; o < from; ++o) results[o] = with_line(results[o], x + line, o * STRIDE_W + shift, w);
      for (int o = to; o < count; ++o) results[o] = with_line(results[o], x + line, o * STRIDE_W + shift, w);
      if (from == to) continue;
      // Splits the line by the stride, so that adjacent outputs read contiguous elements at each tap.
      C(TYPE) dealt[STRIDE_W][LINE + REACH];
      const int ix = from * STRIDE_W + shift, last = to - from + REACH - 1;
      for (int j = 0; j < last; ++j) {
#pragma unroll
        for (int s = 0; s < STRIDE_W; ++s) dealt[s][j] = LOAD(TYPE, x, line + ix + j * STRIDE_W + s);
      }
      for (int s = 0; s < min(STRIDE_W, w - ix - last * STRIDE_W); ++s)
        dealt[s][last] = LOAD(TYPE, x, line + ix + last * STRIDE_W + s);
      for (int o = from; o < to; ++o) {
        C(TYPE) result = results[o];
#pragma unroll
        for (int kw = 0; kw < KERNEL_W; ++kw) {
          const C(TYPE) v = dealt[kw * DILATION_W % STRIDE_W][o - from + kw * DILATION_W / STRIDE_W];
          result = JOIN(result, v);
        }
        results[o] = result;
      }
    }
  }
#if KIND == 2
  // In ceil mode, windows may extend past the padding; positions beyond it do not count.
  const int taps = taps_inside(z + PAD_D, d + PAD_D + end_d, KERNEL_D, DILATION_D) *
                   taps_inside(begin + PAD_H, h + PAD_H + end_h, KERNEL_H, DILATION_H);
  const int padding = 0, width = w + PAD_W + end_w;
#else
  const int taps = taps_inside(z, d, KERNEL_D, DILATION_D) * taps_inside(begin, h, KERNEL_H, DILATION_H);
  const int padding = PAD_W, width = w;
#endif
  for (int o = from; o < to; ++o) STORE(TYPE, y, o, ENDED(results[o], taps * KERNEL_W));
  for (int o = from == 0 ? to : 0; o < count; o = o + 1 == from ? to : o + 1) {
    const int across = taps_inside((first + o) * STRIDE_W - padding, width, KERNEL_W, DILATION_W);
    STORE(TYPE, y, o, ENDED(results[o], taps * across));
  }
}
