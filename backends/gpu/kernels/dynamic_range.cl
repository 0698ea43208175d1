// SPDX-License-Identifier: Apache-2.0
// Computes the scale and zero point that quantize n elements to 8 bits. The range of the elements is extended to
// include 0. NaN is left out, as comparisons with it are false; OpenCL's min and max are not used, since they are not
// defined for NaN and infinity. Runs as one group of LANES work items.
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#if LANES > 1
JOINED(least_of, float, LESSER(a, b))
JOINED(most_of, float, LARGER(a, b))
#endif

kernel void dynamic_range(GLOBAL const float* x, GLOBAL float* scale, GLOBAL uchar* zero, int n) {
  const int lane = (int)get_global_id(0);
  if (lane >= LANES) return;
  float least = 0, most = 0;
  for (int i = lane; i < n; i += LANES) {
    least = LESSER(least, x[i]);
    most = LARGER(most, x[i]);
  }
#if LANES > 1
  SHARED(float, shared, LANES);
  least = least_of(least, shared);
  most = most_of(most, shared);
  if (lane != 0) return;
#endif
  const float step = most == least ? 1 : (most - least) / 255;
  scale[0] = step;
  zero[0] = convert_uchar_sat(rint(-least / step));
}
