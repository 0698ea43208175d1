// SPDX-License-Identifier: Apache-2.0
// Transposed convolution of [N, C, D, H, W]: each element of the result gathers what the input spread to it. TYPE, and
// the window: KERNEL_*, STRIDE_*, DILATION_*, PAD_* for D, H, W; BIAS: one for each map.
kernel void conv_transpose(global const S(TYPE)* x, global const S(TYPE)* k, global const S(TYPE)* bias,
                           global S(TYPE)* y, int channels, int d, int h, int w, int maps, int od, int oh, int ow,
                           int per_group_in, int per_group_out) {
  const int ox = (int)get_global_id(0), oy = (int)get_global_id(1), outer = (int)get_global_id(2);  // (n, map, od)
  if (ox >= ow || oy >= oh) return;
  const int oz = outer % od, map = outer / od % maps, n = outer / (od * maps);
  const int first = map / per_group_out * per_group_in;
  C(TYPE) sum = 0;
  for (int kd = 0; kd < KERNEL_D; ++kd) {
    const int iz = oz + PAD_D - kd * DILATION_D;
    if (iz < 0 || iz % STRIDE_D != 0 || iz / STRIDE_D >= d) continue;
    for (int kh = 0; kh < KERNEL_H; ++kh) {
      const int iy = oy + PAD_H - kh * DILATION_H;
      if (iy < 0 || iy % STRIDE_H != 0 || iy / STRIDE_H >= h) continue;
      for (int kw = 0; kw < KERNEL_W; ++kw) {
        const int ix = ox + PAD_W - kw * DILATION_W;
        if (ix < 0 || ix % STRIDE_W != 0 || ix / STRIDE_W >= w) continue;
        const int at = (iz / STRIDE_D * h + iy / STRIDE_H) * w + ix / STRIDE_W;
        const int tap = (kd * KERNEL_H + kh) * KERNEL_W + kw;
        for (int c = first; c < first + per_group_in; ++c) {
          const C(TYPE) v = LOAD(TYPE, x + (size_t)(n * channels + c) * d * h * w, at);
          const size_t weights = (size_t)(c * per_group_out + map % per_group_out) * (KERNEL_D * KERNEL_H * KERNEL_W);
          sum = fma(v, LOAD(TYPE, k + weights, tap), sum);
        }
      }
    }
  }
#ifdef BIAS
  sum += LOAD(TYPE, bias, map);
#endif
  STORE(TYPE, y, (outer * oh + oy) * ow + ox, sum);
}
