// SPDX-License-Identifier: Apache-2.0
// Attention.
#include <cmath>

#include "ops/attend.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

enum Slot : uint32_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };

// Returns the past elements followed by `fresh`, along the length; this is also output `slot` if the node has that
// output. Returns `fresh` itself if the node has neither past elements nor that output.
Heads with_past(Emit& e, const Heads& fresh, uint32_t past_slot, uint32_t slot) {
  if (!e.has_input(past_slot) && !e.has_output(slot)) return fresh;
  const Tensor past = e.input(past_slot);
  const int64_t before = past ? past.shape[2] : 0;
  Shape shape = fresh.shape();
  shape[2] = before;
  if (past && past.shape != shape)
    throw sdk::Error(BP_TYPE_MISMATCH, std::string(past_slot == kPastKey ? "past_key" : "past_value") + " has shape " +
                                           to_string(past.shape) + " but must have " + to_string(shape));
  shape[2] += fresh.length;
  const Tensor all = e.has_output(slot) ? e.output(slot, shape) : e.scratch(fresh.tensor.dtype, shape);
  View target{all, dense_strides(shape), 0};
  if (past) e.move(past.shape, {past, dense_strides(past.shape), 0}, target);
  target.offset = before * fresh.size;
  e.move(fresh.shape(), fresh.view(), target);
  return heads_of(all, 0);
}

// Checks the mask against scores of shape [batch, heads, queries, keys]. It may have fewer keys; the others are hidden.
AttentionMask mask_of(const Tensor& mask, const Shape& scores) {
  if (!mask) return {};
  const int64_t keys = mask.shape.back();
  Shape seen = scores;
  seen[3] = keys;
  if (keys > scores[3] || (keys == 1 && scores[3] != 1))
    throw sdk::Error(BP_TYPE_MISMATCH, "the mask of shape " + to_string(mask.shape) + " does not fit scores of shape " +
                                           to_string(scores) + ", [batch, heads, queries, keys]");
  return {mask, broadcast_view(mask, seen).strides, keys};
}

void emit_attention(Emit& e, std::string_view) {
  const Node& node = e.node;
  const Heads q = heads_of(e.input(kQuery), node.int_attribute("q_num_heads", 0));
  const int64_t kv_heads = node.int_attribute("kv_num_heads", 0);
  const Heads k = with_past(e, heads_of(e.input(kKey), kv_heads), kPastKey, 1);
  const Heads v = with_past(e, heads_of(e.input(kValue), kv_heads), kPastValue, 2);
  const Tensor lengths = e.input(kLengths);
  if (lengths && lengths.shape != Shape{q.batch})
    throw sdk::Error(BP_TYPE_MISMATCH, "lengths have shape " + to_string(lengths.shape) + " instead of [" +
                                           std::to_string(q.batch) + "], one for each sequence");
  attend(e, q, k, v,
         {.scale = node.attribute("scale") != nullptr ? node.float_attribute("scale", 1)
                                                      : 1 / std::sqrt(static_cast<float>(q.size)),
          .softcap = node.float_attribute("softcap", 0),
          .mask = mask_of(e.input(kMask), {q.batch, q.heads, q.length, k.length}),
          .lengths = lengths,
          .past = e.has_input(kPastKey) ? e.shape(kPastKey)[2] : 0,
          .ahead = node.int_attribute("is_causal", 0) != 0 ? 0 : node.int_attribute("right_window_size", -1),
          .behind = node.int_attribute("left_window_size", -1),
          .shown = e.has_output(3) ? node.int_attribute("qk_matmul_output_mode", 0) : -1},
         q.tensor.rank() == 3);
}

Verdict supports_attention(const Node& node) {
  for (uint32_t slot = 0; slot < node.input_count(); ++slot) {
    const Value each = node.input(slot);
    if (!each || slot == kMask) continue;
    if (slot == kLengths ? each.dtype() != BP_DTYPE_INT64 : each.dtype() != node.input(0).dtype())
      return sdk::no(BP_REASON_DTYPE,
                     "input " + std::to_string(slot) + " cannot be " + std::string(view::dtype_name(each.dtype())));
    if (slot == kPastKey || slot == kPastValue ? each.rank() != 4
                                               : slot != kLengths && each.rank() != node.input(0).rank())
      return sdk::no(BP_REASON_SHAPE,
                     "input " + std::to_string(slot) + " has rank " + std::to_string(each.rank()) +
                         "; past_key and past_value must have rank 4, key and value the rank of the queries");
  }
  if (node.input(0).rank() != 3 && node.input(0).rank() != 4)
    return sdk::no(BP_REASON_SHAPE, "the queries must have rank 3 or 4, not " + std::to_string(node.input(0).rank()));
  if (const auto mask = node.input(kMask)) {
    if (mask.dtype() == BP_DTYPE_DOUBLE) return sdk::no(BP_REASON_DTYPE, "a mask of type double is not supported");
    if (mask.rank() < 2 || mask.rank() > 4)
      return sdk::no(BP_REASON_SHAPE, "the mask has rank " + std::to_string(mask.rank()) + ", not 2 to 4");
  }
  if (static_cast<bool>(node.input(kPastKey)) != static_cast<bool>(node.input(kPastValue)))
    return sdk::no(BP_REASON_OTHER, "past_key and past_value must be given together");
  for (const char* side : {"left_window_size", "right_window_size"}) {
    if (const int64_t size = node.int_attribute(side, -1); size < -1)
      return sdk::no(BP_REASON_ATTRIBUTE,
                     std::string(side) + " is " + std::to_string(size) + "; it must be at least -1");
  }
  const int64_t mode = node.int_attribute("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return sdk::no(BP_REASON_ATTRIBUTE, "qk_matmul_output_mode is " + std::to_string(mode) + "; it must be 0 to 3");
  return accept();
}

}  // namespace

std::span<const Row> attention_rows() {
  static constexpr Row kRows[] = {
      {"",
       "Attention",
       23,
       kFloats & ~one(BP_DTYPE_DOUBLE),
       {3, 7, Form::kSame, 4},
       supports_attention,
       emit_attention,
       {},
       SummedBy::kProducts},
  };
  return kRows;
}

}  // namespace backplane::gpu
