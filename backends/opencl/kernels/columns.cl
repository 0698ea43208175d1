// SPDX-License-Identifier: Apache-2.0
// TYPE: a word of the elements' size; and the window: KERNEL_*, STRIDE_*, DILATION_*, PAD_* for D, H, W.
//
// Each window as a column: out[n][(c, kd, kh, kw)][(od, oh, ow)], so that a convolution is a matrix product.
kernel void columns(global const S(TYPE)* x, global S(TYPE)* out, int channels, int d, int h, int w, int od, int oh,
                    int ow) {
  const int ox = (int)get_global_id(0);
  const int line = (int)get_global_id(1);  // (c, kd, kh, kw)
  const int outer = (int)get_global_id(2);  // (n, od, oh)
  const int lines = channels * KERNEL_D * KERNEL_H * KERNEL_W;
  if (ox >= ow || line >= lines) return;
  const int kw = line % KERNEL_W, kh = line / KERNEL_W % KERNEL_H, kd = line / (KERNEL_W * KERNEL_H) % KERNEL_D;
  const int c = line / (KERNEL_W * KERNEL_H * KERNEL_D);
  const int oy = outer % oh, oz = outer / oh % od, n = outer / (oh * od);
  const int ix = ox * STRIDE_W + kw * DILATION_W - PAD_W;
  const int iy = oy * STRIDE_H + kh * DILATION_H - PAD_H;
  const int iz = oz * STRIDE_D + kd * DILATION_D - PAD_D;
  const bool inside = ix >= 0 && ix < w && iy >= 0 && iy < h && iz >= 0 && iz < d;
  out[((n * lines + line) * od + oz) * oh * ow + oy * ow + ox] =
      inside ? x[(((n * channels + c) * d + iz) * h + iy) * w + ix] : 0;
}
