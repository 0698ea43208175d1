// SPDX-License-Identifier: Apache-2.0
// Writes update[batch][outer][length][inner] to y[batch][outer][times][inner], from position starts[batch] of `times` on;
// with CIRCULAR, positions beyond the end continue at 0. TYPE is a type of the elements' size. `batch_count` is the
// number of elements that a batch has in `update`. A start out of range sets fault[0] to `node`, and the batch's update is
// not written.
kernel void tensor_scatter(GLOBAL const S(TYPE)* update, GLOBAL const long* starts, GLOBAL S(TYPE)* y, int total,
                           int times, int length, int inner, int batch_count,
                           GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int row = i / (inner * length), step = i / inner % length;
  const long start = starts[i / batch_count];
#ifdef CIRCULAR
  const bool inside = start >= 0 && start < times;
#else
  const bool inside = start >= 0 && start <= times - length;
#endif
  if (!inside) {
    fault[0] = node;
    return;
  }
  const int time = (int)((start + step) % times);
  STORE(TYPE, y, (row * times + time) * inner + i % inner, LOAD(TYPE, update, i));
}
