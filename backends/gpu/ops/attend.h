// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention for the operators that contain it, computed in fp32: one kernel for few queries,
// otherwise two products with a softmax between them.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// A tensor viewed as [batch, heads, length, size].
struct Heads {
  Tensor tensor;
  int64_t batch, heads, length, size;
  std::vector<int64_t> strides;  // of [batch, heads, length, size] in `tensor`, in elements
  int64_t offset = 0;            // of the first element

  Shape shape() const { return {batch, heads, length, size}; }
  View view() const { return {tensor, strides, offset}; }
};

// Views a tensor of shape [batch, heads, length, size] or [batch, length, heads * size] as heads.
Heads heads_of(const Tensor& x, int64_t heads);

// Values that are added to the scores or, with type BOOL, hide keys where they are false. Keys from `keys` on are
// hidden.
struct AttentionMask {
  Tensor tensor;                                           // may be empty
  std::vector<int64_t> strides = std::vector<int64_t>(4);  // of [batch, heads, queries, keys], the last of them 1 or 0
  int64_t keys = 0;
};

struct AttentionRules {
  float scale = 1;
  float softcap = 0;  // 0: no cap
  AttentionMask mask;
  // [batch], INT64: how many keys each batch has; its n queries have the last n of these positions. May be empty.
  Tensor lengths;
  int64_t past = 0;                 // without lengths: the position of the first query
  int64_t ahead = -1, behind = -1;  // how many keys after and before its own position a query sees; -1: all
  Tensor sinks;                     // [heads] or [1]: a score that each row has besides those of its keys; may be empty
  // The step whose scores are written to output 3: a value of qk_matmul_output_mode, or -1 for none.
  int64_t shown = -1;
};

// Sets output 0 to the results of attention, [batch, query heads, queries, size of v], or [batch, queries, heads *
// size] if `packed`. Each head of k and v serves q.heads / k.heads consecutive heads of q. Throws if q, k and v do not
// fit each other.
void attend(Emit& e, const Heads& q, const Heads& k, const Heads& v, const AttentionRules& rules, bool packed);

}  // namespace backplane::gpu
