// SPDX-License-Identifier: Apache-2.0
// Convolution of [N, C, D, H, W]. TYPE, and the window: KERNEL_*, STRIDE_*, DILATION_*, PAD_* for D, H, W.
// INTEGER: the type is one.

// By the definition: one output element a work item. For groups of few channels, where columns would cost more than
// the product.
kernel void direct(global const S(TYPE)* x, global const S(TYPE)* k, global const S(TYPE)* bias, global S(TYPE)* y,
                   int channels, int d, int h, int w, int maps, int od, int oh, int ow, int per_group_in,
                   int per_group_out) {
  const int ox = (int)get_global_id(0);
  const int oy = (int)get_global_id(1);
  const int outer = (int)get_global_id(2);  // (n, map, od)
  if (ox >= ow || oy >= oh) return;
  const int oz = outer % od, map = outer / od % maps, n = outer / (od * maps);
  const int first = map / per_group_out * per_group_in;
  C(TYPE) sum = 0;
  for (int c = 0; c < per_group_in; ++c) {
    global const S(TYPE)* plane = x + (size_t)(n * channels + first + c) * d * h * w;
    global const S(TYPE)* weights = k + (size_t)(map * per_group_in + c) * (KERNEL_D * KERNEL_H * KERNEL_W);
    for (int kd = 0; kd < KERNEL_D; ++kd) {
      const int iz = oz * STRIDE_D + kd * DILATION_D - PAD_D;
      if (iz < 0 || iz >= d) continue;
      for (int kh = 0; kh < KERNEL_H; ++kh) {
        const int iy = oy * STRIDE_H + kh * DILATION_H - PAD_H;
        if (iy < 0 || iy >= h) continue;
        for (int kw = 0; kw < KERNEL_W; ++kw) {
          const int ix = ox * STRIDE_W + kw * DILATION_W - PAD_W;
          if (ix < 0 || ix >= w) continue;
          const C(TYPE) v = LOAD(TYPE, plane, (iz * h + iy) * w + ix);
          const C(TYPE) weight = LOAD(TYPE, weights, (kd * KERNEL_H + kh) * KERNEL_W + kw);
#ifdef INTEGER
          sum += v * weight;
#else
          sum = fma(v, weight, sum);
#endif
        }
      }
    }
  }
#ifdef BIAS
  sum += LOAD(TYPE, bias, map);
#endif
  STORE(TYPE, y, ((n * maps + map) * od + oz) * oh * ow + oy * ow + ox, sum);
}
