// SPDX-License-Identifier: Apache-2.0
// Pools [N·C, D, H, W] of TYPE. KERNEL_*, STRIDE_*, DILATION_* and PAD_* for D, H, W describe the window. KIND: 0
// maximum, 1 average, 2 average that counts the padding, 3 the P-norm. INDICES: also writes the maximum's index in the
// flattened x; with BY_COLUMN, the index counts D, H and W in column-major order. For a window entirely in the padding,
// the maximum is LEAST, the lowest value of TYPE, and the average is 0.
kernel void pool(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, int d, int h, int w, int od, int oh, int ow, int end_d,
                 int end_h, int end_w
#ifdef INDICES
                 ,
                 GLOBAL long* indices
#endif
) {
  const int ox = (int)get_global_id(0);
  const int oy = (int)get_global_id(1);
  const int outer = (int)get_global_id(2);  // (n·c, od)
  if (ox >= ow || oy >= oh) return;
  const int oz = outer % od;
  x += (size_t)(outer / od) * d * h * w;
  C(TYPE) result = KIND == 0 ? LEAST : 0;
  bool any = false;
  int position = 0;
  int padded = 0, inside = 0;
  for (int kd = 0; kd < KERNEL_D; ++kd) {
    const int iz = oz * STRIDE_D + kd * DILATION_D - PAD_D;
    for (int kh = 0; kh < KERNEL_H; ++kh) {
      const int iy = oy * STRIDE_H + kh * DILATION_H - PAD_H;
      for (int kw = 0; kw < KERNEL_W; ++kw) {
        const int ix = ox * STRIDE_W + kw * DILATION_W - PAD_W;
        // In ceil mode, windows may extend past the padding; positions beyond it do not count.
        if (iz < d + end_d && iy < h + end_h && ix < w + end_w) ++padded;
        if (iz < 0 || iz >= d || iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
        const C(TYPE) v = LOAD(TYPE, x, (iz * h + iy) * w + ix);
        ++inside;
#if KIND == 0
        if (!any || v > result || v != v) {
          result = v;
#ifdef BY_COLUMN
          position = (ix * h + iy) * d + iz;
#else
          position = (iz * h + iy) * w + ix;
#endif
        }
        any = true;
#elif KIND == 3
        result += pow(fabs(v), (C(TYPE))P);
#else
        result += v;
#endif
      }
    }
  }
#if KIND == 1
  result /= max(inside, 1);
#elif KIND == 2
  result /= padded;
#elif KIND == 3
  result = pow(result, (C(TYPE))1 / P);
#endif
#ifdef INDICES
  indices[(outer * oh + oy) * ow + ox] = (long)(outer / od) * d * h * w + position;
#endif
  STORE(TYPE, y, (outer * oh + oy) * ow + ox, result);
}
