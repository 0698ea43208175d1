// SPDX-License-Identifier: Apache-2.0
// The second step of a transposed convolution of [N, C, D, H, W]. A product has computed sums [N, maps, taps, d, h, w]:
// the contribution of each input element to each tap (position) of its window. An element of the result adds up the
// contributions that reach it. SUM is the type of the sums, TYPE that of the bias and the result. BIAS: there is one
// bias for each map. KERNEL_*, STRIDE_*, DILATION_* and PAD_* for D, H, W describe the window.
kernel void conv_transpose(GLOBAL const S(SUM)* sums, GLOBAL const S(TYPE)* bias, GLOBAL S(TYPE)* y, int d, int h,
                           int w, int maps, int od, int oh, int ow) {
  const int ox = (int)get_global_id(0), oy = (int)get_global_id(1), outer = (int)get_global_id(2);  // (n, map, od)
  if (ox >= ow || oy >= oh) return;
  const int oz = outer % od, plane = outer / od;
  sums += (size_t)plane * (KERNEL_D * KERNEL_H * KERNEL_W) * d * h * w;
  C(SUM) sum = 0;
  for (int kd = 0; kd < KERNEL_D; ++kd) {
    const int iz = oz + PAD_D - kd * DILATION_D;
    if (iz < 0 || iz % STRIDE_D != 0 || iz / STRIDE_D >= d) continue;
    for (int kh = 0; kh < KERNEL_H; ++kh) {
      const int iy = oy + PAD_H - kh * DILATION_H;
      if (iy < 0 || iy % STRIDE_H != 0 || iy / STRIDE_H >= h) continue;
      for (int kw = 0; kw < KERNEL_W; ++kw) {
        const int ix = ox + PAD_W - kw * DILATION_W;
        if (ix < 0 || ix % STRIDE_W != 0 || ix / STRIDE_W >= w) continue;
        const int tap = (kd * KERNEL_H + kh) * KERNEL_W + kw;
        sum += LOAD(SUM, sums, ((tap * d + iz / STRIDE_D) * h + iy / STRIDE_H) * w + ix / STRIDE_W);
      }
    }
  }
#ifdef BIAS
  sum += LOAD(TYPE, bias, plane % maps);
#endif
  STORE(TYPE, y, (outer * oh + oy) * ow + ox, sum);
}
