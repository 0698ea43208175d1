// SPDX-License-Identifier: Apache-2.0
// Rotates pairs of elements by angles that depend on a token's position. x is [batch, heads, length, size], addressed
// by strides. Only the first DIM elements of a head are rotated: adjacent ones form a pair if INTERLEAVED; otherwise
// element i forms a pair with element i + DIM / 2. TYPE is the element type. With POSITIONS, positions[batch][token] is
// the token's line in `cosines` and `sines`; without it, these have one line per token.
kernel void rotary(GLOBAL const S(TYPE)* x, GLOBAL const S(TYPE)* cosines, GLOBAL const S(TYPE)* sines,
                   GLOBAL const long* positions, GLOBAL S(TYPE)* y, int total, int heads, int length, int size,
                   int batch_stride, int head_stride, int token_stride, int lines,
                   GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int k = i % size, token = i / size % length, head = i / (size * length) % heads;
  const int batch = i / (size * length * heads);
  const int begin = batch * batch_stride + head * head_stride + token * token_stride;
  const C(TYPE) own = LOAD(TYPE, x, begin + k);
  if (k >= DIM) {
    STORE(TYPE, y, begin + k, own);
    return;
  }
#ifdef INTERLEAVED
  const int pair = k / 2, other = k ^ 1;
  const bool is_second = k % 2 != 0;
#else
  const int pair = k % (DIM / 2), other = k < DIM / 2 ? k + DIM / 2 : k - DIM / 2;
  const bool is_second = k >= DIM / 2;
#endif
#ifdef POSITIONS
  if (positions[batch * length + token] < 0 || positions[batch * length + token] >= lines) fault[0] = node;
  const int line = (int)clamp(positions[batch * length + token], (long)0, (long)(lines - 1));
#else
  const int line = batch * length + token;
#endif
  const C(TYPE) c = LOAD(TYPE, cosines, line * (DIM / 2) + pair), s = LOAD(TYPE, sines, line * (DIM / 2) + pair);
  const C(TYPE) v = LOAD(TYPE, x, begin + other);
  STORE(TYPE, y, begin + k, is_second ? s * v + c * own : c * own - s * v);
}
