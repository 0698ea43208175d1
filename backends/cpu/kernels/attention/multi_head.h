// SPDX-License-Identifier: Apache-2.0
// Shared by com.microsoft's operators for attention with packed heads: attributes, key masks, the cache of keys and
// values, and attention on fp32 queries, keys and values.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "runtime/row.h"

namespace backplane::cpu {

struct MultiHeadOptions {
  int64_t heads = 0;
  float scale = 0;        // 0: 1 / sqrt(head size)
  float masked = -10000;  // added to the scores of masked keys
  bool causal = false;
  std::vector<int64_t> sizes;  // total widths of queries, keys and values; empty: all equal
};

// Reads the attributes num_heads, scale, mask_filter_value, unidirectional and qkv_hidden_sizes.
MultiHeadOptions multi_head_options(const Node& node);
// Whether num_heads and the number of qkv_hidden_sizes are valid, and attributes that are not supported are absent or
// 0.
Verdict check_multi_head(const Node& node);

// An INT32 key mask in one of its forms: [batch] or [3 · batch + 2], which begin with the lengths; [2 · batch], the
// ends, then the starts; [batch, keys] or [batch, queries, keys], where a key is masked unless its number is positive;
// [batch, 1] or [1, 1], which have no effect.
class KeyMask {
 public:
  // Sets the form. Returns false if the mask is present and has none of these forms.
  bool fit(const Tensor& mask, const AttentionSize& s);
  // Adds `masked` to the first `n` scores of query `i` of batch `b` where the key is masked.
  void add(const int32_t* mask, const AttentionSize& s, float masked, int64_t b, int64_t i, float* row,
           int64_t n) const;

 private:
  enum { kNone, kLengths, kEndsAndStarts, kKeys, kQueryKeys } kind_ = kNone;
};

// Attention on fp32 queries, keys and values, once these are computed.
struct MultiHead {
  MultiHeadOptions options;
  AttentionSize size{};
  int64_t past = 0;  // number of keys before the new ones
  KeyMask mask;
  std::array<int64_t, 2> bias_strides{};  // strides of attention_bias by batch and head
  bool plain = false;                     // reference mode: compute as the operator is defined

  // Whether attention_bias has the extents of the scores, or 1 for batch or heads. If so, sets `bias_strides`.
  bool fit_bias(const Tensor& bias);
  int64_t cached_floats(int64_t width) const { return product({size.batch, size.kv_heads, size.kv_length, width}); }
  void run(HeadView<const float> q, HeadView<const float> k, HeadView<const float> v, const Tensor& mask_tensor,
           const Tensor& bias, const Tensor& result, void* scratch) const;
};

// Writes the keys or values of all positions to `to`, as [batch, heads, past + length, width]: the `before` past
// positions, then the new rows, whose heads are packed and which are `fresh_row` floats apart.
void join_cache(const float* past, int64_t before, const float* fresh, int64_t fresh_row, const MultiHead& m,
                int64_t width, float* to);
// Returns memory for `floats` floats of a cache: that of the output `present`, or `storage` if the output is absent
// or of another type.
float* present_or(const Tensor& present, int64_t floats, std::vector<float>& storage);

}  // namespace backplane::cpu
