// SPDX-License-Identifier: Apache-2.0
// Selects elements by index. TYPE is an unsigned integer of the elements' size, INDEX is i32 or i64. Negative indices
// count from the end. An index out of range sets fault[0] to `node` and reads the nearest element.
inline int position(GLOBAL const S(INDEX)* indices, int i, int n, GLOBAL int* fault, int node) {
  const long at = (long)indices[i];
  if (at < -n || at >= n) fault[0] = node;
  return (int)clamp(at < 0 ? at + n : at, (long)0, (long)(n - 1));
}

// y[outer][count][inner] from x[outer][n][inner]. A work item copies up to RUN adjacent elements.
kernel void gather(GLOBAL const S(TYPE)* restrict x, GLOBAL const S(INDEX)* indices, GLOBAL S(TYPE)* restrict y,
                   int outer, int n, int count, int inner, GLOBAL int* fault, int node) {
  const int first = (int)get_global_id(0) * RUN, k = (int)get_global_id(1), o = (int)get_global_id(2);
  if (first >= inner || k >= count) return;
  x += (o * n + position(indices, k, n, fault, node)) * inner;
  y += (o * count + k) * inner;
  for (int i = first; i < min(first + RUN, inner); ++i) y[i] = x[i];
}

// y[outer][count][inner] from x[outer][n][inner], with one index for each element of y.
kernel void gather_elements(GLOBAL const S(TYPE)* x, GLOBAL const S(INDEX)* indices, GLOBAL S(TYPE)* y, int total,
                            int n, int count, int inner, GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  y[i] = x[(i / (inner * count) * n + position(indices, i, n, fault, node)) * inner + i % inner];
}

// y[batch][count][inner] from x, which has `size` elements per batch. `depth` indices select a slice of `inner`
// elements: the k-th of them is a position along a dimension of extent extents[k].
kernel void gather_nd(GLOBAL const S(TYPE)* x, GLOBAL const S(INDEX)* indices, GLOBAL const int* extents,
                      GLOBAL S(TYPE)* y, int total, int depth, int size, int count, int inner, GLOBAL int* fault,
                      int node) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int slice = i / inner;
  int at = 0;
  for (int k = 0; k < depth; ++k) at = at * extents[k] + position(indices, slice * depth + k, extents[k], fault, node);
  y[i] = x[(size_t)(slice / count) * size + at * inner + i % inner];
}
