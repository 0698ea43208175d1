// SPDX-License-Identifier: Apache-2.0
// y[outer][depth][inner] is values[1] at position indices[outer][inner] along depth, and values[0] elsewhere. TYPE is
// an unsigned integer of the elements' size, INDEX the type of the indices.
kernel void one_hot(GLOBAL const S(INDEX)* indices, GLOBAL const S(TYPE)* values, GLOBAL S(TYPE)* y, int total,
                    int depth, int inner) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const C(INDEX) index = LOAD(INDEX, indices, i / (inner * depth) * inner + i % inner);
  // Indices beyond 32 bits are out of range. Those that `long` cannot hold (large unsigned integers, infinity, NaN) are not
  // converted.
  const float about = (float)index;
  long at = about > -4294967296.0f && about < 4294967296.0f ? (long)index : depth;
  if (at < 0) at += depth;
  y[i] = values[i / inner % depth == at ? 1 : 0];
}
