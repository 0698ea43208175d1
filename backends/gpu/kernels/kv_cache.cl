// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values, [batch][heads][capacity][size], in which each sequence of the batch has its own length.

// Finds the positions of `queries` new tokens: lengths[batch] + 1 is a sequence's length with these tokens. In a first
// prompt, where `total` equals `queries`, they begin at 0. ends[batch] becomes the position after the last of them.
// Positions that do not fit into the cache, or leave a gap after the `past` positions in use, and a total that is
// negative or above `most` set fault[0] to `node`.
kernel void kv_positions(GLOBAL const int* lengths, GLOBAL const int* total, GLOBAL long* positions, GLOBAL long* ends,
                         int items, int queries, int capacity, int past, int most,
                         GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= items) return;
  const int batch = i / (queries > 0 ? queries : 1), token = queries > 0 ? i % queries : 0;
  const long length = (long)lengths[batch] + 1;
  long begin = total[0] == queries ? 0 : length - queries;
  if (length < 0 || begin < 0 || begin + queries > capacity || begin > past || total[0] < 0 || total[0] > most) {
    fault[0] = node;
    begin = 0;
  }
  if (queries > 0) positions[i] = begin + token;
  if (token == 0) ends[batch] = begin + queries;
}

// Fills a cache: `past`, then the new tokens, then zeros. `fresh` is [batch][heads][queries][size], addressed by strides
// and an offset. TYPE is a type of the elements' size. `past` and `y` may be the same memory if `past_capacity` is
// `capacity`: then the elements of `past` are already in place and are not copied. After a fault, nothing is written: a run
// with wrong positions must not destroy a cache that is updated in place.
kernel void kv_append(GLOBAL const S(TYPE)* past, GLOBAL const S(TYPE)* fresh, GLOBAL const long* ends,
                      GLOBAL S(TYPE)* y, int total, int heads, int capacity, int size, int past_capacity, int queries,
                      int batch_stride, int head_stride, int token_stride, int offset,
                      GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= total || fault[0] != 0) return;
  const int k = i % size, time = i / size % capacity, row = i / (size * capacity);
  const int batch = row / heads, head = row % heads;
  const int end = (int)ends[batch], begin = end - queries;
  if (time < begin) {
    if (past != y) y[i] = past[(row * past_capacity + time) * size + k];
  } else if (time < end) {
    y[i] = fresh[offset + batch * batch_stride + head * head_stride + (time - begin) * token_stride + k];
  } else {
    y[i] = 0;
  }
}
