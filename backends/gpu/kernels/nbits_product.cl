// SPDX-License-Identifier: Apache-2.0
// y[rows][columns] is a[rows][k] times the transpose of the weights [columns][k], plus the bias. The weights are stored
// as quantized values of BITS bits: element i of a column (0 <= i < k) is (value - zero) * scale, with the zero point and
// the scale of the block that i belongs to. A column has `blocks` blocks of BLOCK values; the last block may have unused
// values at its end. Sums are in fp32.
//
// TYPE       type of a and y
// SCALE      type of scales[column][block]
// ZERO       type of zeros[column][block]; if undefined, every zero point is 2^(BITS - 1)
// ZERO_BITS  bits of a zero point that is packed like the values; the zero points of each column begin at a whole byte.
//            0: zero points are not packed
// GROUPED    element i belongs to block groups[i]; otherwise to block i / BLOCK. If groups[i] is no block, sets fault[0]
//            to `node`
// BIAS       type of bias[column]; if undefined, there is no bias
// ROWS       consecutive rows of a that a work item multiplies by its column
// LANES      work items that share these rows and a column
#if LANES > 1
JOINED(joined, float, a + b)
#endif

kernel void nbits_product(GLOBAL const S(TYPE)* a, GLOBAL const uchar* values, GLOBAL const S(SCALE)* scales,
#ifdef ZERO
                          GLOBAL const S(ZERO)* zeros,
#endif
#ifdef GROUPED
                          GLOBAL const int* groups,
#endif
#ifdef BIAS
                          GLOBAL const S(BIAS)* bias,
#endif
                          GLOBAL S(TYPE)* y, int items, int rows, int columns, int k, int blocks
#ifdef GROUPED
                          , GLOBAL int* fault, int node
#endif
) {
  const int item = (int)get_global_id(0) / LANES, lane = (int)get_global_id(0) % LANES;
#if LANES > 1
  SHARED(float, shared, LANES);
#else
  if (item >= items) return;
#endif
  const int column = item % columns, first = item / columns * ROWS;
  values += (size_t)column * blocks * (BLOCK / 8 * BITS);
  float sums[ROWS];
  for (int r = 0; r < ROWS; ++r) sums[r] = 0;
  for (int begin = lane * 8; begin < k; begin += LANES * 8) {
    for (int i = begin; i < min(begin + 8, k); ++i) {
#ifdef GROUPED
      int block = groups[i];
      if (block < 0 || block >= blocks) {
        fault[0] = node;
        block = 0;
      }
#else
      const int block = i / BLOCK;
#endif
#ifndef ZERO
      const float zero = 1 << (BITS - 1);
#elif ZERO_BITS > 0
      const int zero_at = column * ((blocks * BITS + 7) / 8) + block * BITS / 8;
      const float zero = (float)(zeros[zero_at] >> block * BITS % 8 & ((1 << BITS) - 1));
#else
      const float zero = LOAD(ZERO, zeros, column * blocks + block);
#endif
      const float value = (float)(values[i * BITS / 8] >> i * BITS % 8 & ((1 << BITS) - 1));
      const float weight = (value - zero) * LOAD(SCALE, scales, column * blocks + block);
      for (int r = 0; r < ROWS; ++r) sums[r] += LOAD(TYPE, a, min(first + r, rows - 1) * k + i) * weight;
    }
  }
  for (int r = 0; r < ROWS; ++r) {
#if LANES > 1
    const float sum = joined(sums[r], shared);
    if (lane != 0) continue;
#else
    const float sum = sums[r];
#endif
    if (first + r >= rows) continue;
#ifdef BIAS
    STORE(TYPE, y, (first + r) * columns + column, sum + LOAD(BIAS, bias, column));
#else
    STORE(TYPE, y, (first + r) * columns + column, sum);
#endif
  }
}
