// SPDX-License-Identifier: Apache-2.0
// com.microsoft GroupQueryAttention: causal attention that can rotate queries and keys itself, with caches of keys and
// values in which each sequence of the batch has its own length.
#include <algorithm>
#include <cmath>

#include "ops/attend.h"
#include "ops/rotary.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

enum Slot : uint32_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSinks
};

// The call's numbers, and the positions of its new tokens.
struct Call {
  int64_t heads, kv_heads, batch, queries, size;
  int64_t capacity, past;  // numbers of positions in the caches after and before the call
  Tensor positions, ends;  // INT64 [batch, queries] and [batch]
};

[[noreturn]] void mismatch(const std::string& text) {
  throw sdk::Error(BP_TYPE_MISMATCH, text);
}

void require_shape(const Tensor& x, const Shape& shape, const char* name) {
  if (x && x.shape != shape)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     std::string(name) + " has shape " + to_string(x.shape) + " but must have " + to_string(shape));
}

// Whether present_key is declared with the number of positions of past_key, by a number or a name.
bool keeps_capacity(const Node& node) {
  const Value past = node.input(kPastKey), present = node.output(1);
  if (!past || !present || past.rank() != 4 || present.rank() != 4) return false;
  return past.extent(2) >= 0 ? past.extent(2) == present.extent(2)
                             : !past.symbol(2).empty() && past.symbol(2) == present.symbol(2);
}

// A constant total_sequence_length determines the caches' capacity. Otherwise, the capacity is the one that the model
// declares for the outputs; caches that are not outputs have room for the past and the new tokens.
int64_t capacity_of(Emit& e, int64_t past, int64_t queries) {
  if (e.constant(kTotal)) {
    const std::vector<int64_t> total = e.ints(kTotal);
    if (total.size() != 1 || total[0] < 0)
      mismatch("total_sequence_length is " + to_string(total) + "; it must be one number >= 0");
    return std::max(past, total[0]);
  }
  if (!e.has_output(1)) return past + queries;
  return keeps_capacity(e.node) ? past : e.node.output(1).extent(2);
}

Call call_of(Emit& e) {
  const Shape x = e.shape(kQuery);
  const bool packed = !e.has_input(kKey);
  Call c{.heads = e.node.int_attribute("num_heads", 0), .kv_heads = e.node.int_attribute("kv_num_heads", 0)};
  const int64_t row_heads = c.heads + (packed ? 2 * c.kv_heads : 0);
  if (x[2] % row_heads != 0 || x[2] == 0)
    mismatch("query of shape " + to_string(x) + " does not split into " + std::to_string(row_heads) + " heads");
  c.batch = x[0], c.queries = x[1], c.size = x[2] / row_heads;
  const Tensor past = e.input(kPastKey);
  c.past = past ? past.shape[2] : 0;
  c.capacity = capacity_of(e, c.past, c.queries);
  if (c.capacity < c.past)
    throw sdk::Error(BP_TYPE_MISMATCH, "present_key is declared with " + std::to_string(c.capacity) +
                                           " positions, fewer than the " + std::to_string(c.past) + " of past_key");
  const Shape cache{c.batch, c.kv_heads, c.past, c.size}, fresh{c.batch, c.queries, c.kv_heads * c.size};
  require_shape(past, cache, "past_key");
  require_shape(e.input(kPastValue), cache, "past_value");
  require_shape(e.input(kKey), fresh, "key");
  require_shape(e.input(kValue), fresh, "value");
  if (elements(e.shape(kLengths)) != c.batch)
    mismatch("seqlens_k has shape " + to_string(e.shape(kLengths)) + "; it must have one element for each of the " +
             std::to_string(c.batch) + " sequences");
  if (elements(e.shape(kTotal)) != 1)
    mismatch("total_sequence_length has shape " + to_string(e.shape(kTotal)) + "; it must have one element");
  c.positions = e.scratch(BP_DTYPE_INT64, {c.batch, c.queries});
  c.ends = e.scratch(BP_DTYPE_INT64, {c.batch});
  e.launch("kv_cache", "kv_positions", "-DTYPE=u8")
      .in(e.input(kLengths))
      .in(e.input(kTotal))
      .out(c.positions)
      .out(c.ends)
      .arg(c.batch * std::max<int64_t>(c.queries, 1))
      .arg(c.queries)
      .arg(c.capacity)
      .arg(c.past)
      .arg(e.has_output(1) ? c.capacity : INT32_MAX)
      .fault()
      .range(c.batch * std::max<int64_t>(c.queries, 1));
  return c;
}

// Heads of a tensor [batch, length, row_heads * size], from head `first` on.
Heads heads_in(const Tensor& x, int64_t first, int64_t heads, int64_t size) {
  const int64_t length = x.shape[1], row = x.shape[2];
  return {x, x.shape[0], heads, length, size, {length * row, size, row, 1}, first * size};
}

// Returns a tensor with the first `heads` heads of `x`, rotated; its other heads are undefined. Returns `x` itself if
// the node rotates nothing.
Tensor rotated(Emit& e, const Call& c, const Tensor& x, int64_t heads) {
  if (e.node.int_attribute("do_rotary", 0) == 0) return x;
  const Tensor cosines = e.input(kCosines), sines = e.input(kSines), given = e.input(kPositions);
  const int64_t dim = 2 * cosines.shape[1];
  if (sines.shape == cosines.shape && dim == 0) return x;
  if (sines.shape != cosines.shape || dim > c.size || cosines.shape[0] == 0)
    mismatch("cos_cache of shape " + to_string(cosines.shape) + " and sin_cache of shape " + to_string(sines.shape) +
             " do not fit each other and heads of size " + std::to_string(c.size));
  if (given && given.count() != c.positions.count())
    mismatch("position_ids has shape " + to_string(given.shape) + "; it must have one element for each of the " +
             std::to_string(c.positions.count()) + " new tokens");
  const Tensor y = e.scratch(x.dtype, x.shape);
  emit_rotation(e, {x, heads, x.shape[2] / c.size, c.size},
                {cosines, sines, given ? given : c.positions, dim, e.node.int_attribute("rotary_interleaved", 0) != 0},
                y);
  return y;
}

// Returns a cache with the new keys or values appended: output `slot` if the node has that output, otherwise scratch.
Heads appended(Emit& e, const Call& c, const Heads& fresh, uint32_t past_slot, uint32_t slot) {
  const Tensor past = e.input(past_slot);
  const Shape shape{c.batch, c.kv_heads, c.capacity, c.size};
  const Tensor y = e.has_output(slot) ? e.output(slot, shape) : e.scratch(fresh.tensor.dtype, shape);
  e.launch("kv_cache", "kv_append", "-DTYPE=" + std::string(word_name(y.dtype)))
      .in(past ? past : fresh.tensor)
      .in(fresh.tensor)
      .in(c.ends)
      .out(y)
      .arg(y.count())
      .arg(c.kv_heads)
      .arg(c.capacity)
      .arg(c.size)
      .arg(c.past)
      .arg(c.queries)
      .arg(fresh.strides[0])
      .arg(fresh.strides[1])
      .arg(fresh.strides[2])
      .arg(fresh.offset)
      .fault()
      .range(y.count());
  return heads_of(y, 0);
}

// attention_bias may have more keys than the caches; no query sees the additional ones.
AttentionMask bias_of(const Call& c, const Tensor& bias) {
  if (!bias) return {};
  const Shape& shape = bias.shape;
  if ((shape[0] != 1 && shape[0] != c.batch) || (shape[1] != 1 && shape[1] != c.heads) || shape[2] != c.queries)
    mismatch("attention_bias has shape " + to_string(shape) + "; it must have [1 or " + std::to_string(c.batch) +
             ", 1 or " + std::to_string(c.heads) + ", " + std::to_string(c.queries) + ", keys]");
  std::vector<int64_t> strides = dense_strides(shape);
  for (const size_t d : {0u, 1u})
    if (shape[d] == 1) strides[d] = 0;
  return {bias, strides, std::min(shape[3], c.capacity)};
}

Tensor sinks_of(Emit& e, const Call& c) {
  const Tensor given = e.input(kSinks);
  if (given) {
    if (given.count() != c.heads)
      mismatch("head_sink has " + std::to_string(given.count()) + " elements, but there are " +
               std::to_string(c.heads) + " heads");
    return given;
  }
  if (e.node.int_attribute("smooth_softmax", 0) != 1) return {};
  return e.table(BP_DTYPE_FLOAT, {1}, std::vector<float>(1));
}

void emit_group_query_attention(Emit& e, std::string_view) {
  const Call c = call_of(e);
  const Tensor x = e.input(kQuery);
  const bool packed = !e.has_input(kKey);
  const Tensor q = rotated(e, c, x, packed ? c.heads + c.kv_heads : c.heads);
  const Tensor k = packed ? q : rotated(e, c, e.input(kKey), c.kv_heads), v = packed ? x : e.input(kValue);
  const Heads queries = heads_in(q, 0, c.heads, c.size);
  const Heads keys = heads_in(k, packed ? c.heads : 0, c.kv_heads, c.size);
  const Heads values = heads_in(v, packed ? c.heads + c.kv_heads : 0, c.kv_heads, c.size);
  const float scale = e.node.float_attribute("scale", 0);
  const int64_t window = e.node.int_attribute("local_window_size", -1);
  attend(e, queries, appended(e, c, keys, kPastKey, 1), appended(e, c, values, kPastValue, 2),
         {.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(c.size)),
          .softcap = e.node.float_attribute("softcap", 0),
          .mask = bias_of(c, e.input(kBias)),
          .lengths = c.ends,
          .ahead = 0,
          .behind = window < 0 ? -1 : window - 1,
          .sinks = sinks_of(e, c)},
         true);
}

Verdict types_of(const Node& node) {
  sdk::Expect expected = expect(node);
  for (const uint32_t slot : {kKey, kValue, kPastKey, kPastValue, kCosines, kSines, kBias, kSinks})
    expected.same_dtype(kQuery, slot);
  return expected.input_dtype(kLengths, one(BP_DTYPE_INT32))
      .input_dtype(kTotal, one(BP_DTYPE_INT32))
      .input_dtype(kPositions, one(BP_DTYPE_INT64))
      .rank(kQuery, 3, 3)
      .rank(kPastKey, 4, 4)
      .rank(kPastValue, 4, 4)
      .rank(kCosines, 2, 2)
      .rank(kSines, 2, 2)
      .rank(kBias, 4, 4);
}

Verdict supports_group_query_attention(const Node& node) {
  const int64_t heads = node.int_attribute("num_heads", 0), kv_heads = node.int_attribute("kv_num_heads", 0);
  constexpr int64_t kMostHeads = 1 << 20;
  if (heads > kMostHeads)
    return sdk::no(BP_REASON_ATTRIBUTE, "num_heads is " + std::to_string(heads) + "; at most " +
                                            std::to_string(kMostHeads) + " are supported");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    return sdk::no(BP_REASON_ATTRIBUTE, "num_heads must be a positive multiple of kv_num_heads, but they are " +
                                            std::to_string(heads) + " and " + std::to_string(kv_heads));
  if (const int64_t window = node.int_attribute("local_window_size", -1); window == 0 || window < -1)
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "local_window_size is " + std::to_string(window) + "; it must be -1 or at least 1");
  if (!node.input(kLengths) || !node.input(kTotal))
    return sdk::no(BP_REASON_OTHER,
                   std::string(node.input(kLengths) ? "total_sequence_length" : "seqlens_k") + " is missing");
  const bool rotates = node.int_attribute("do_rotary", 0) != 0;
  if (static_cast<bool>(node.input(kKey)) != static_cast<bool>(node.input(kValue)) ||
      static_cast<bool>(node.input(kPastKey)) != static_cast<bool>(node.input(kPastValue)) ||
      (rotates && (!node.input(kCosines) || !node.input(kSines))))
    return sdk::no(BP_REASON_OTHER,
                   "key and value, past_key and past_value, and, with do_rotary, cos_cache and sin_cache must be given "
                   "together");
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (node.text_attribute(name, "NONE") != "NONE")
      return sdk::no(BP_REASON_ATTRIBUTE, std::string(name) + " requires a quantized cache, which is not supported");
  if (node.int_attribute("qk_output", 0) != 0)
    return sdk::no(BP_REASON_ATTRIBUTE, "scores as an output are not supported");
  if (node.input(kTotal).weight() != nullptr) return types_of(node);
  if (static_cast<bool>(node.output(1)) != static_cast<bool>(node.output(2)))
    return sdk::no(BP_REASON_OTHER,
                   "only one of the outputs present_key and present_value is used; total_sequence_length, which is not "
                   "a constant, requires both or none");
  if (const Value present = node.output(1);
      present && (present.rank() != 4 || present.extent(2) < 0) && !keeps_capacity(node))
    return sdk::no(BP_REASON_CONSTANT,
                   "the number of positions in present_key depends on total_sequence_length, which is not a constant; "
                   "let the model declare it, as a number or by the name that it has in past_key");
  return types_of(node);
}

constexpr InPlace kCaches[] = {{kPastKey, 1, false}, {kPastValue, 2, false}};

}  // namespace

std::span<const Row> group_query_attention_rows() {
  static constexpr Row kRows[] = {
      {"com.microsoft",
       "GroupQueryAttention",
       1,
       kFloats & ~one(BP_DTYPE_DOUBLE),
       {1, 12, Form::kSame, 3},
       supports_group_query_attention,
       emit_group_query_attention,
       {},
       SummedBy::kProducts,
       kCaches,
       {},
       "seqlens_k, total_sequence_length or position_ids do not fit the new tokens, the caches or cos_cache"},
  };
  return kRows;
}

}  // namespace backplane::gpu
