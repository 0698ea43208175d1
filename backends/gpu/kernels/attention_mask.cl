// SPDX-License-Identifier: Apache-2.0
// Masks attention scores [batch, heads, queries, keys]: a hidden key gets the score -INFINITY.
//
// MASKED    adds a mask of type MASK to the scores, and hides keys with index mask_keys or more; with BOOLEAN, the mask
//           is not added but hides keys where it is 0
// CAUSAL    query i sees only keys up to past + i
// LENGTHS   batch b sees only its first lengths[b] keys
kernel void attention_mask(GLOBAL const float* scores, GLOBAL const S(MASK)* mask, GLOBAL const long* lengths,
                           GLOBAL float* y, int total, int heads, int queries, int keys, int batch_stride,
                           int head_stride, int query_stride, int mask_keys, int past) {
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
#ifdef CAUSAL
  hidden = hidden || key > past + query;
#endif
#ifdef LENGTHS
  hidden = hidden || key >= lengths[batch];
#endif
  y[i] = hidden ? -INFINITY : v;
}
