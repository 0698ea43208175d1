// SPDX-License-Identifier: Apache-2.0
// Elements written or combined at indices. TYPE; INDEX: i32 or i64; JOIN(a, b): the new value of an element. Updates
// that may have the same target belong to one work item, in order: equal inputs have equal results. Indices
// out of range are reported in `fault`.
kernel void scatter_elements(GLOBAL const S(INDEX)* indices, GLOBAL const S(TYPE)* updates, GLOBAL const int* shape,
                             GLOBAL S(TYPE)* y, int lines, int axis, int rank,
                             GLOBAL int* fault, int node) {
  // shape: the extents of the updates, then the strides of y. A work item has the updates along the axis.
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
    const int place = base + (int)at * along;
    const C(TYPE) a = LOAD(TYPE, y, place), b = LOAD(TYPE, updates, source + k * step);
    STORE(TYPE, y, place, JOIN(a, b));
  }
}

// `count` slices of `inner` elements, each with `depth` indices; extents[k] is that of the dimension of index k.
kernel void scatter_nd(GLOBAL const S(INDEX)* indices, GLOBAL const S(TYPE)* updates, GLOBAL const int* extents,
                       GLOBAL S(TYPE)* y, int count, int depth, int inner,
                       GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= inner) return;
  for (int slice = 0; slice < count; ++slice) {
    int at = 0;
    bool inside = true;
    for (int k = 0; k < depth; ++k) {
      long place = (long)indices[slice * depth + k];
      if (place < 0) place += extents[k];
      inside = inside && place >= 0 && place < extents[k];
      at = at * extents[k] + (int)place;
    }
    if (!inside) {
      fault[0] = node;
      continue;
    }
    const C(TYPE) a = LOAD(TYPE, y, at * inner + i), b = LOAD(TYPE, updates, slice * inner + i);
    STORE(TYPE, y, at * inner + i, JOIN(a, b));
  }
}
