// SPDX-License-Identifier: Apache-2.0
// The com.microsoft operators that exported models use most. They have no schemas, so these rules set the data types,
// and extents where these are simple to infer.
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// Copies the data type of an input to output `slot`, if the input is a tensor.
void like(Context& c, size_t slot, size_t input_slot) {
  if (c.input(input_slot).kind == BP_KIND_TENSOR) c.set_dtype(slot, c.input(input_slot).dtype);
}

Status same(Context& c) {
  like(c, 0, 0);
  return same_shape(c);
}

Status broadcast_two(Context& c, size_t a, size_t b) {
  if (!c.ranked(a) || !c.ranked(b)) return {};
  Shape shape;
  BP_TRY(c.broadcast(c.shape(a), c.shape(b), shape));
  return c.set_shape(0, shape);
}

// Sets the shape of a MatMul's output, for operands of rank 2 or more.
Status product(Context& c, size_t a_slot, size_t b_slot, bool a_transposed = false, bool b_transposed = false) {
  if (!c.ranked(a_slot) || !c.ranked(b_slot) || c.rank(a_slot) < 2 || c.rank(b_slot) < 2) return {};
  Shape a = c.shape(a_slot), b = c.shape(b_slot), shape;
  BP_TRY(c.broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2), shape));
  shape.push_back(a[a.size() - (a_transposed ? 1 : 2)]);
  shape.push_back(b[b.size() - (b_transposed ? 2 : 1)]);
  return c.set_shape(0, shape);
}

Status matmul_nbits(Context& c) {
  like(c, 0, 0);
  if (!c.ranked(0) || c.rank(0) < 1) return {};
  Shape shape = c.shape(0);
  shape.back() = Scalar(c.integer("N"));
  return c.set_shape(0, shape);
}

Status fused_matmul(Context& c) {
  like(c, 0, 0);
  if (c.integer("transBatchA") || c.integer("transBatchB")) return {};
  return product(c, 0, 1, c.integer("transA") != 0, c.integer("transB") != 0);
}

Status dynamic_matmul(Context& c) {
  c.set_dtype(0, BP_DTYPE_FLOAT);
  return product(c, 0, 1);
}

Status scaled_matmul(Context& c) {
  like(c, 0, 2);
  return product(c, 0, 1);
}

// Outputs: [batch, length, heads * size] and the caches of keys and values, [batch, kv heads, positions, size]. The
// extent `positions` is inferred only if the value of total_sequence_length is known.
Status group_query_attention(Context& c) {
  for (size_t slot = 0; slot < 3; ++slot) like(c, slot, 0);
  const int64_t heads = c.integer("num_heads"), kv_heads = c.integer("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || !c.ranked(0) || c.rank(0) != 3) return {};
  Expressions& m = c.math();
  const bool packed = !c.has(1);
  Scalar parts = packed ? m.add(heads, m.multiply(kv_heads, 2)) : Scalar(heads);
  Scalar size = m.floor_divide(c.dim(0, 2), parts);
  BP_TRY(c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), m.multiply(size, Scalar(heads))}));
  // The new caches have as many positions as the past caches, but at least total_sequence_length (input 6).
  Scalar positions;
  const KnownData* total = c.known_data(6);
  if (total && total->size() == 1 && (!c.has(3) || (c.ranked(3) && c.rank(3) == 4)))
    positions = c.has(3) ? m.max(c.dim(3, 2), (*total)[0]) : (*total)[0];
  for (size_t slot : {1, 2}) BP_TRY(c.set_shape(slot, {c.dim(0, 0), Scalar(kv_heads), positions, size}));
  return {};
}

// Outputs: [batch, length, heads * value size], and the caches, whose shapes are not inferred.
Status multi_head_attention(Context& c) {
  for (size_t slot = 0; slot < 3; ++slot) like(c, slot, 0);
  if (!c.ranked(0) || c.rank(0) != 3 || !c.has(2) || !c.ranked(2)) return {};
  const int64_t heads = c.integer("num_heads");
  Expressions& m = c.math();
  if (c.rank(2) == 3) return c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), c.dim(2, 2)});
  if (c.rank(2) == 4 && heads > 0)
    return c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), m.multiply(c.dim(2, 3), Scalar(heads))});
  return {};
}

// Outputs: [batch, length, columns of V] and the cache of keys and values, whose shape is not inferred. Without
// qkv_hidden_sizes, V has a third of the columns of the weights.
Status combined_attention(Context& c) {
  for (size_t slot = 0; slot < 2; ++slot) like(c, slot, 0);
  if (!c.ranked(0) || c.rank(0) != 3) return {};
  const std::vector<int64_t> sizes = c.integers("qkv_hidden_sizes");
  if (sizes.size() == 3) return c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), Scalar(sizes[2])});
  if (!c.ranked(1) || c.rank(1) != 2) return {};
  return c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), c.math().floor_divide(c.dim(1, 1), Scalar(3))});
}

// Inputs: X [sequence, batch, input] and R [directions, hidden, 4 · hidden]. Outputs: Y, Y_h and Y_c.
Status quantized_lstm(Context& c) {
  for (size_t slot = 0; slot < 3; ++slot) c.set_dtype(slot, BP_DTYPE_FLOAT);
  for (size_t slot = 0; slot < 3; ++slot) BP_TRY(c.expect_rank(slot, 3, 3));
  Scalar directions = c.text("direction") == "bidirectional" ? 2 : 1;
  BP_TRY(c.merge(directions, c.dim(1, 0), directions, "directions and the first extent of W"));
  Scalar hidden = c.dim(2, 1);
  if (c.has_attribute("hidden_size"))
    BP_TRY(c.merge(c.integer("hidden_size"), hidden, hidden, "hidden_size and the second extent of R"));
  BP_TRY(c.set_shape(0, {c.dim(0, 0), directions, c.dim(0, 1), hidden}));
  for (size_t slot : {1, 2}) BP_TRY(c.set_shape(slot, {directions, c.dim(0, 1), hidden}));
  return {};
}

// Outputs: [batch, length, a third of the columns of the weights] and the cache [2, batch, heads, keys, size].
Status quantized_attention(Context& c) {
  for (size_t slot = 0; slot < 2; ++slot) like(c, slot, 2);
  BP_TRY(c.expect_rank(0, 3, 3));
  BP_TRY(c.expect_rank(1, 2, 2));
  const Scalar width = c.math().floor_divide(c.dim(1, 1), Scalar(3));
  BP_TRY(c.set_shape(0, {c.dim(0, 0), c.dim(0, 1), width}));
  const int64_t heads = c.integer("num_heads");
  if (heads < 1) return {};
  const Scalar keys = c.has(8) ? c.math().add(c.dim(8, 3), c.dim(0, 1)) : c.dim(0, 1);
  return c.set_shape(1, {Scalar(2), c.dim(0, 0), Scalar(heads), keys, c.math().floor_divide(width, Scalar(heads))});
}

// Outputs: Y, mean, inverse standard deviation, and the sum of the inputs.
Status skip_norm(Context& c) {
  like(c, 0, 0);
  c.copy_shape(0, 0);
  like(c, 3, 0);
  c.copy_shape(3, 0);
  for (size_t slot : {1, 2}) c.set_dtype(slot, BP_DTYPE_FLOAT);
  return {};
}

Status simplified_norm(Context& c) {
  like(c, 0, 1);
  c.copy_shape(0, 0);
  c.set_dtype(1, BP_DTYPE_FLOAT);
  return {};
}

// Outputs: the normalized sum of the embeddings [batch, length, width]; the number of ones in each row of the mask
// [batch]; the sum itself, in the shape of the first output.
Status embed_norm(Context& c) {
  for (size_t slot : {0, 2}) like(c, slot, 2);
  c.set_dtype(1, BP_DTYPE_INT32);
  for (size_t slot : {0, 2, 3}) BP_TRY(c.expect_rank(slot, 2, 2));
  const Shape sums = {c.dim(0, 0), c.dim(0, 1), c.dim(2, 1)};
  BP_TRY(c.set_shape(0, sums));
  BP_TRY(c.set_shape(1, {c.dim(0, 0)}));
  return c.set_shape(2, sums);
}

Status quantized_binary(Context& c) {
  like(c, 0, 0);
  return broadcast_two(c, 0, 3);
}

// The output has the data type and rank of the input. Its extents are not inferred.
Status quantized_pool(Context& c) {
  like(c, 0, 0);
  if (!c.ranked(0) || c.rank(0) < 3) return {};
  return c.set_rank(0, c.rank(0));
}

Status quantized_global_pool(Context& c) {
  like(c, 0, 0);
  if (!c.ranked(0) || c.rank(0) < 3) return {};
  Shape shape = c.shape(0);
  const bool last = c.integer("channels_last") != 0;
  for (size_t i = last ? 1 : 2; i < shape.size() - (last ? 1 : 0); ++i) shape[i] = Scalar(1);
  return c.set_shape(0, shape);
}

Status quantized_concat(Context& c) {
  like(c, 0, 1);  // input 1 is the zero point of the result
  if (!c.ranked(2)) return {};
  return c.set_rank(0, c.rank(2));
}

Status fused_conv(Context& c) {
  like(c, 0, 0);
  return fused_convolution(c);
}

Status nhwc_conv(Context& c) {
  like(c, 0, 0);
  return nhwc_convolution(c);
}

Status fused_gemm(Context& c) {
  like(c, 0, 0);
  return product(c, 0, 1, c.integer("transA") != 0, c.integer("transB") != 0);
}

constexpr std::string_view kDomain = "com.microsoft";
}  // namespace

std::span<const RuleRow> microsoft_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "SimplifiedLayerNormalization", simplified_norm},  // ONNX Runtime registers it in ai.onnx's domain
      {kDomain, "Attention", combined_attention},
      {kDomain, "BiasGelu", same},
      {kDomain, "DynamicQuantizeMatMul", dynamic_matmul},
      {kDomain, "DynamicQuantizeLSTM", quantized_lstm},
      {kDomain, "EmbedLayerNormalization", embed_norm},
      {kDomain, "FastGelu", same},
      {kDomain, "FusedConv", fused_conv},
      {kDomain, "FusedGemm", fused_gemm},
      {kDomain, "FusedMatMul", fused_matmul},
      {kDomain, "Gelu", same},
      {kDomain, "GroupQueryAttention", group_query_attention},
      {kDomain, "MatMulIntegerToFloat", scaled_matmul},
      {kDomain, "MatMulNBits", matmul_nbits},
      {kDomain, "MultiHeadAttention", multi_head_attention},
      {kDomain, "NhwcConv", nhwc_conv},
      {kDomain, "QAttention", quantized_attention},
      {kDomain, "QLinearAdd", quantized_binary},
      {kDomain, "QLinearAveragePool", quantized_pool},
      {kDomain, "QLinearConcat", quantized_concat},
      {kDomain, "QLinearGlobalAveragePool", quantized_global_pool},
      {kDomain, "QLinearLeakyRelu", same},
      {kDomain, "QLinearMul", quantized_binary},
      {kDomain, "QLinearSigmoid", same},
      {kDomain, "QuickGelu", same},
      {kDomain, "RotaryEmbedding", same},
      {kDomain, "SimplifiedLayerNormalization", simplified_norm},
      {kDomain, "SkipLayerNormalization", skip_norm},
      {kDomain, "SkipSimplifiedLayerNormalization", skip_norm},
  };
  return kRows;
}

}  // namespace backplane::ops
