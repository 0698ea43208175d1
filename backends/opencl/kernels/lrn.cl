// SPDX-License-Identifier: Apache-2.0
// Each element divided by a power of the squares of its neighbours among the channels. TYPE; BEFORE and BEHIND
// neighbours; ALPHA is alpha / size.
kernel void lrn(global const S(TYPE)* x, global S(TYPE)* y, int count, int channels, int inner) {
  const int i = (int)get_global_id(0);
  if (i >= count) return;
  const int channel = i / inner % channels;
  C(TYPE) squares = 0;
  for (int c = max(channel - BEFORE, 0); c <= min(channel + BEHIND, channels - 1); ++c) {
    const C(TYPE) v = LOAD(TYPE, x, i + (c - channel) * inner);
    squares += v * v;
  }
  STORE(TYPE, y, i, LOAD(TYPE, x, i) / pow((C(TYPE))BIAS + (C(TYPE))ALPHA * squares, (C(TYPE))BETA));
}
