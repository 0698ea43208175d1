// SPDX-License-Identifier: Apache-2.0
// Attention of few queries: a group of LANES work items computes one row of the result, in fp32, and reads each key and
// value once. Tensors of TYPE are viewed as [batch, heads, length, size], addressed by strides; the elements of a head are
// contiguous. SIZE and VSIZE are the sizes of keys and values. `repeat` heads of queries share a head of keys and values.
// Scores are multiplied by `scale`, and with CAPPED limited to `cap`. MASKED, BOOLEAN, AHEAD, BEHIND and LENGTHS are as in
// attention_mask.cl. With WITH_SINK, each row has one more score, sinks[head * sink_stride] of type SINK, which counts in
// the sum but has no value. The result of a query that sees no key is 0.
//
// Keys are visited LANES at a time. After each step, `most` is the greatest score so far, `sum` is the sum of the weights
// exp(score - most), and `part` the sum of the values times their weights. When `most` grows, `sum` and `part` are scaled
// to the new weights.
#define PARTS ((VSIZE + LANES - 1) / LANES)
JOINED(sum_of, float, a + b)
JOINED(greatest, float, GREATER(a, b))

kernel void attention_rows(GLOBAL const S(TYPE)* q, GLOBAL const S(TYPE)* k, GLOBAL const S(TYPE)* v,
                           GLOBAL const S(MASK)* mask, GLOBAL const long* lengths, GLOBAL const S(SINK)* sinks,
                           GLOBAL S(TYPE)* y, int heads, int queries, int keys, int repeat, int q_batch, int q_head,
                           int q_row, int q_offset, int k_batch, int k_head, int k_row, int k_offset, int v_batch,
                           int v_head, int v_row, int v_offset, int y_batch, int y_head, int y_row, int mask_batch,
                           int mask_head, int mask_query, int mask_keys, int past, int ahead, int behind,
                           int sink_stride, float scale, float cap) {
  const int row = (int)get_group_id(0), lane = (int)get_local_id(0);
  const int query = row % queries, head = row / queries % heads, batch = row / (queries * heads);
  SHARED(float, own_query, SIZE);
  SHARED(float, shared, LANES);
  SHARED(float, weights, LANES);
  for (int e = lane; e < SIZE; e += LANES)
    own_query[e] = LOAD(TYPE, q, q_offset + batch * q_batch + head * q_head + query * q_row + e);
  barrier(CLK_LOCAL_MEM_FENCE);

  // The keys from `first` to `end` are visited; the others are hidden.
  int first = 0, end = keys;
#ifdef LENGTHS
  const long given = lengths[batch];
  end = given < 0 ? 0 : given > keys ? keys : (int)given;
  const int own = end - queries + query;
#else
  const int own = past + query;
#endif
#ifdef MASKED
  end = min(end, mask_keys);
#endif
#ifdef AHEAD
  if (own + ahead < end) end = own + ahead + 1;
#endif
#ifdef BEHIND
  if (own - behind > 0) first = own - behind;
#endif

  float most = -INFINITY, sum = 0;
#ifdef WITH_SINK
  most = LOAD(SINK, sinks, head * sink_stride);
  sum = 1;
#endif
  float part[PARTS];
  for (int p = 0; p < PARTS; ++p) part[p] = 0;
  const int keys_at = k_offset + batch * k_batch + head / repeat * k_head;
  const int values_at = v_offset + batch * v_batch + head / repeat * v_head;
  for (int base = first; base < end; base += LANES) {
    const int key = base + lane;
    float score = -INFINITY;
    if (key < end) {
      float product = 0;
      for (int e = 0; e < SIZE; ++e) product += own_query[e] * LOAD(TYPE, k, keys_at + key * k_row + e);
      score = product * scale;
#ifdef CAPPED
      score = tanh(score / cap) * cap;
#endif
#ifdef MASKED
      const C(MASK) m = LOAD(MASK, mask, batch * mask_batch + head * mask_head + query * mask_query + key);
#ifdef BOOLEAN
      if (m == 0) score = -INFINITY;
#else
      score += m;
#endif
#endif
    }
    const float top = greatest(score, shared);
    const float grown = GREATER(most, top);
    const float weight = score == -INFINITY ? 0 : exp(score - grown);
    const float kept = most == grown ? 1 : exp(most - grown);
    weights[lane] = weight;
    sum = sum * kept + sum_of(weight, shared);  // also waits until all lanes have written `weights`
    const int count = min(LANES, end - base);
    for (int p = 0; p < PARTS; ++p) {
      const int d = p * LANES + lane;
      if (d >= VSIZE) break;
      float mixed = part[p] * kept;
      for (int j = 0; j < count; ++j) mixed += weights[j] * LOAD(TYPE, v, values_at + (base + j) * v_row + d);
      part[p] = mixed;
    }
    most = grown;
    barrier(CLK_LOCAL_MEM_FENCE);  // before the next step overwrites `weights`
  }
  for (int p = 0; p < PARTS; ++p) {
    const int d = p * LANES + lane;
    if (d < VSIZE)
      STORE(TYPE, y, batch * y_batch + head * y_head + query * y_row + d, sum == 0 ? 0 : part[p] / sum);
  }
}
