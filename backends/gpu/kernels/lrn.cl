// SPDX-License-Identifier: Apache-2.0
// Local response normalization: divides each element of x[n][channels][inner] by POWER(BIAS + ALPHA · s), where s is
// the sum of squares over the element's channel, the BEFORE channels before it and the AFTER channels after it. TYPE is
// the element type, ALPHA is alpha / size, and POWER(v) is v to the power of beta.
kernel void lrn(GLOBAL const S(TYPE)* restrict x, GLOBAL S(TYPE)* restrict y, int channels, int inner) {
  const int i = (int)get_global_id(0), channel = (int)get_global_id(1);
  if (i >= inner || channel >= channels) return;
  const int at = ((int)get_global_id(2) * channels + channel) * inner + i;
  C(TYPE) squares = 0;
  for (int c = max(channel - BEFORE, 0); c <= min(channel + AFTER, channels - 1); ++c) {
    const C(TYPE) v = LOAD(TYPE, x, at + (c - channel) * inner);
    squares += v * v;
  }
  const C(TYPE) sum = (C(TYPE))BIAS + (C(TYPE))ALPHA * squares;
  STORE(TYPE, y, at, LOAD(TYPE, x, at) / (C(TYPE))(POWER(sum)));
}
