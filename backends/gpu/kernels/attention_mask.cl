// SPDX-License-Identifier: Apache-2.0
// Masks attention scores [batch, heads, queries, keys]: a hidden key gets the score -INFINITY.
//
// MASKED    adds a mask of type MASK to the scores, and hides keys with index mask_keys or more; with BOOLEAN, the mask
//           is not added but hides keys where it is 0
// AHEAD     a query sees only keys at most `ahead` positions after its own, which is past + i for query i
// BEHIND    a query sees only keys at most `behind` positions before its own
// LENGTHS   batch b sees only its first lengths[b] keys, and its queries have the last `queries` of these positions
kernel void attention_mask(GLOBAL const float* scores, GLOBAL const S(MASK)* mask, GLOBAL const long* lengths,
                           GLOBAL float* y, int total, int heads, int queries, int keys, int batch_stride,
                           int head_stride, int query_stride, int mask_keys, int past, int ahead,
                           int behind) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int key = i % keys, query = i / keys % queries, head = i / (keys * queries) % heads;
  const int batch = i / (keys * queries * heads);
  float v = scores[i];
  bool hidden = false;
#ifdef MASKED
  if (key < mask_keys) {
    const C(MASK) m = LOAD(MASK, mask, batch * batch_stride + head * head_stride + query * query_stride + key);
#ifdef BOOLEAN
    hidden = m == 0;
#else
    v += m;
#endif
  } else {
    hidden = true;
  }
#endif
#ifdef LENGTHS
  const long given = lengths[batch];
  const int length = given < 0 ? 0 : given > keys ? keys : (int)given;
  const int own = length - queries + query;
  hidden = hidden || key >= length;
#else
  const int own = past + query;
#endif
#ifdef AHEAD
  hidden = hidden || key - own > ahead;
#endif
#ifdef BEHIND
  hidden = hidden || own - key > behind;
#endif
  y[i] = hidden ? -INFINITY : v;
}
