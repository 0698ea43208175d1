// SPDX-License-Identifier: Apache-2.0
// Updates elements of y at indices. TYPE is the element type, INDEX is i32 or i64. JOIN(a, b) is the new value of
// element a after update b. One work item applies all updates that may have the same target, in order, so that results
// are deterministic. An index out of range sets fault[0] to `node`, and its update is skipped.
kernel void scatter_elements(GLOBAL const S(INDEX)* indices, GLOBAL const S(TYPE)* updates, GLOBAL const int* shape,
                             GLOBAL S(TYPE)* y, int lines, int axis, int rank,
                             GLOBAL int* fault, int node) {
  // A work item applies a line of updates along the axis. `shape` holds the updates' extents, the strides of y, and the
  // extent of y along the axis.
  const int line = (int)get_global_id(0);
  if (line >= lines) return;
  int rest = line, base = 0, source = 0, step = 1, along = 1;
  for (int d = rank - 1, stride = 1; d >= 0; stride *= shape[d], --d) {
    if (d == axis) {
      step = stride;
      continue;
    }
    const int c = rest % shape[d];
    rest /= shape[d];
    base += c * shape[rank + d];
    source += c * stride;
  }
  along = shape[rank + axis];
  const int n = shape[2 * rank];
  for (int k = 0; k < shape[axis]; ++k) {
    long at = (long)indices[source + k * step];
    if (at < 0) at += n;
    if (at < 0 || at >= n) {
      fault[0] = node;
      continue;
    }
    const int position = base + (int)at * along;
    const C(TYPE) a = LOAD(TYPE, y, position), b = LOAD(TYPE, updates, source + k * step);
    STORE(TYPE, y, position, JOIN(a, b));
  }
}

// Applies `count` updates, each to a slice of `inner` elements of y. `depth` indices select the slice: the k-th of them
// is a position along a dimension of extent extents[k].
kernel void scatter_nd(GLOBAL const S(INDEX)* indices, GLOBAL const S(TYPE)* updates, GLOBAL const int* extents,
                       GLOBAL S(TYPE)* y, int count, int depth, int inner,
                       GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= inner) return;
  for (int slice = 0; slice < count; ++slice) {
    int at = 0;
    bool inside = true;
    for (int k = 0; k < depth; ++k) {
      long position = (long)indices[slice * depth + k];
      if (position < 0) position += extents[k];
      inside = inside && position >= 0 && position < extents[k];
      at = at * extents[k] + (int)position;
    }
    if (!inside) {
      fault[0] = node;
      continue;
    }
    const C(TYPE) a = LOAD(TYPE, y, at * inner + i), b = LOAD(TYPE, updates, slice * inner + i);
    STORE(TYPE, y, at * inner + i, JOIN(a, b));
  }
}
