// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// The extents of Q, K or V, from either layout: packed [batch, length, heads * size] or [batch, heads, length, size].
struct Heads {
  Scalar batch, heads, length, size;
};

Status read(Context& c, size_t slot, std::string_view count, Heads& out) {
  BP_TRY(c.expect_rank(slot, 3, 4));
  if (c.rank(slot) == 4) {
    out = {c.dim(slot, 0), c.dim(slot, 1), c.dim(slot, 2), c.dim(slot, 3)};
    return {};
  }
  int64_t heads = c.integer(count);
  Scalar width = c.dim(slot, 2);
  if (heads < 1 || (width.is_number() && width.value % heads != 0)) {
    return c.fail(std::string(count) + " is " + std::to_string(heads) + ", but it must divide the extent " +
                  c.describe({width}));
  }
  out = {c.dim(slot, 0), heads, c.dim(slot, 1), c.math().floor_divide(width, heads)};
  return {};
}

Status attention(Context& c) {
  if (!c.ranked(0) || !c.ranked(1) || !c.ranked(2)) return {};
  Heads q, k, v;
  BP_TRY(read(c, 0, "q_num_heads", q));
  BP_TRY(read(c, 1, "kv_num_heads", k));
  BP_TRY(read(c, 2, "kv_num_heads", v));
  Expressions& m = c.math();
  Scalar size;
  BP_TRY(c.merge(q.size, k.size, size, "the head sizes of Q and K"));
  if (c.rank(0) == 3) {
    BP_TRY(c.set_shape(0, {q.batch, q.length, m.multiply(q.heads, v.size)}));
  } else {
    BP_TRY(c.set_shape(0, {q.batch, q.heads, q.length, v.size}));
  }
  Scalar total = c.has(4) ? m.add(c.dim(4, 2), k.length) : k.length;
  BP_TRY(c.set_shape(1, {k.batch, k.heads, total, size}));
  BP_TRY(c.set_shape(2, {v.batch, v.heads, total, v.size}));
  return c.set_shape(3, {q.batch, q.heads, q.length, total});
}

// Q, K, V and the output are packed as [batch, length, heads * size]. The state is [batch, kv heads, key size, value
// size].
Status linear_attention(Context& c) {
  for (size_t slot = 0; slot < 3; ++slot) BP_TRY(c.expect_rank(slot, 3, 3));
  int64_t q_heads = c.integer("q_num_heads"), kv_heads = c.integer("kv_num_heads");
  if (q_heads < 1 || kv_heads < 1) return c.fail("q_num_heads and kv_num_heads must be at least 1");
  if (!c.ranked(0) || !c.ranked(1) || !c.ranked(2)) return {};
  Expressions& m = c.math();
  Scalar key = m.floor_divide(c.dim(1, 2), kv_heads), value = m.floor_divide(c.dim(2, 2), kv_heads);
  BP_TRY(c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), m.multiply(value, q_heads)}));
  c.set_dtype(1, c.has(3) ? c.input(3).dtype : c.input(0).dtype);
  return c.set_shape(1, {c.dim(0, 0), kv_heads, key, value});
}

Status rotary(Context& c) {
  BP_TRY(c.expect_rank(0, 3, 4));
  return same_shape(c);
}

// Infers the subgraph `name`, which modifies attention scores or probabilities. It maps [batch, heads, queries, keys]
// to the same shape, in the softmax's precision.
Status modifier(Context& c, std::string_view name) {
  model::Graph* graph = c.subgraph(name);
  if (!graph) return {};
  if (graph->inputs.size() != 1 || graph->outputs.size() != 1) {
    return c.fail(std::string(name) + " takes " + std::to_string(graph->inputs.size()) + " and returns " +
                  std::to_string(graph->outputs.size()) + " values; both must be 1");
  }
  model::Type type;
  type.kind = BP_KIND_TENSOR;
  type.dtype = c.input(0).dtype == BP_DTYPE_DOUBLE ? BP_DTYPE_DOUBLE : BP_DTYPE_FLOAT;
  if (int64_t wanted = c.integer("softmax_precision")) type.dtype = static_cast<bp_dtype_t>(wanted);
  type.rank = 4;
  type.dims.assign(4, {-1, BP_NONE, 0});
  for (size_t i = 0; i < 4 && c.ranked(0) && c.ranked(1); ++i) {
    type.dims[i] = i < 3 ? c.input(0).dims[i] : c.input(1).dims[2];
  }
  model::Type& declared = graph->values[graph->inputs[0]].type;
  std::string problem;
  if (!merge_types(type, declared, problem)) {
    return c.fail("the input of " + std::string(name) + " does not fit the scores: " + problem);
  }
  declared = std::move(type);
  return c.infer_subgraph(*graph);
}

// Q, K and V are [batch, heads, length, size]. The output has Q's shape with the last extent of V.
Status flex_attention(Context& c) {
  for (size_t slot = 0; slot < 3; ++slot) BP_TRY(c.expect_rank(slot, 4, 4));
  constexpr int64_t kPrecisions[] = {0, BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_DOUBLE, BP_DTYPE_BFLOAT16};
  if (const int64_t wanted = c.integer("softmax_precision");
      std::ranges::find(kPrecisions, wanted) == std::end(kPrecisions))
    return c.fail("softmax_precision is " + std::to_string(wanted) +
                  ", but it must be that of float, float16, double or bfloat16");
  BP_TRY(modifier(c, "score_mod"));
  BP_TRY(modifier(c, "prob_mod"));
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  shape[3] = c.dim(2, 3);
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> attention_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Attention", attention},
      {"", "LinearAttention", linear_attention},
      {"", "RotaryEmbedding", rotary},
      {"ai.onnx.preview", "FlexAttention", flex_attention},
  };
  return kRows;
}

}  // namespace backplane::ops
