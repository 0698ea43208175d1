// SPDX-License-Identifier: Apache-2.0
// Pads the channels of x [N·C, D, H, W] and splits them by the window's stride into y [N·C, phases, qd, qh, qw]: phase
// (pd, ph, pw) has the elements at positions z * stride + p of the padded channel. The elements that one tap of the
// window reads are then contiguous. TYPE is an unsigned integer of the elements' size; STRIDE_* and PHASES_* are for D,
// H, W. LANES work items share a line (the qw elements of one (qd, qh)).
kernel void polyphase(GLOBAL const S(TYPE)* restrict x, GLOBAL S(TYPE)* restrict y, int d, int h, int w, int qd,
                   int qh, int qw, int pad_d, int pad_h, int pad_w) {
  const int zh = (int)get_global_id(0) / LANES, lane = (int)get_global_id(0) % LANES;
  const int slice = (int)get_global_id(1), plane = (int)get_global_id(2);
  if (zh >= qh || slice >= PHASES_D * PHASES_H * PHASES_W * qd) return;
  const int zd = slice % qd, phase = slice / qd;
  const int pw = phase % PHASES_W, ph = phase / PHASES_W % PHASES_H, pd = phase / (PHASES_W * PHASES_H);
  const int iy = zh * STRIDE_H + ph - pad_h, iz = zd * STRIDE_D + pd - pad_d;
  const bool inside = iy >= 0 && iy < h && iz >= 0 && iz < d;
  // Positions [first, last) come from x; the rest of the line is padding.
  const int shift = pw - pad_w;
  const int first = inside ? clamp((STRIDE_W - 1 - shift) / STRIDE_W, 0, qw) : qw;
  const int last = inside ? clamp((w - shift + STRIDE_W - 1) / STRIDE_W, first, qw) : qw;
  x += (plane * d + (inside ? iz : 0)) * h * w + (inside ? iy : 0) * w;
  y += ((plane * (PHASES_D * PHASES_H * PHASES_W * qd) + slice) * qh + zh) * qw;
  for (int zw = lane; zw < first; zw += LANES) y[zw] = 0;
  for (int zw = first + lane; zw < last; zw += LANES) y[zw] = x[zw * STRIDE_W + shift];
  for (int zw = last + lane; zw < qw; zw += LANES) y[zw] = 0;
}
