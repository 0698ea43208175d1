// SPDX-License-Identifier: Apache-2.0
// Attention, computed in fp32: two products with a softmax between them. Before the products, heads are copied to be
// contiguous, keys are transposed, and keys and values are repeated for the query heads that share them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/gemm.h"
#include "ops/softmax.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

enum Slot : uint32_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };

// A tensor viewed as [batch, heads, length, size]; it may have this shape, or [batch, length, heads * size].
struct Heads {
  Tensor tensor;
  int64_t batch, heads, length, size;
  std::vector<int64_t> strides;  // of [batch, heads, length, size] in `tensor`, in elements

  Shape shape() const { return {batch, heads, length, size}; }
  View view() const { return {tensor, strides, 0}; }
};

Heads heads_of(const Tensor& x, int64_t heads) {
  if (x.rank() == 4) return {x, x.shape[0], x.shape[1], x.shape[2], x.shape[3], dense_strides(x.shape)};
  if (heads <= 0 || x.shape[2] % heads != 0)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "shape " + to_string(x.shape) + " does not split into " + std::to_string(heads) + " heads");
  const int64_t length = x.shape[1], size = x.shape[2] / heads;
  return {x, x.shape[0], heads, length, size, {length * heads * size, size, heads * size, 1}};
}

// Returns the past elements followed by `fresh`, along the length; this is also output `slot` if the node has that
// output. Returns `fresh` itself if the node has neither past elements nor that output.
Heads with_past(Emit& e, const Heads& fresh, uint32_t past_slot, uint32_t slot) {
  if (!e.has_input(past_slot) && !e.has_output(slot)) return fresh;
  const Tensor past = e.input(past_slot);
  const int64_t before = past ? past.shape[2] : 0;
  Shape shape = fresh.shape();
  shape[2] = before;
  if (past && past.shape != shape)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "the past has shape " + to_string(past.shape) + " but must have " + to_string(shape));
  shape[2] += fresh.length;
  const Tensor all = e.has_output(slot) ? e.output(slot, shape) : e.scratch(fresh.tensor.dtype, shape);
  View target{all, dense_strides(shape), 0};
  if (past) e.move(past.shape, {past, dense_strides(past.shape), 0}, target);
  target.offset = before * fresh.size;
  e.move(fresh.shape(), fresh.view(), target);
  return heads_of(all, 0);
}

// Copies heads to fp32, each `repeat` times; `transposed` swaps their two inner dimensions.
Tensor laid_out(Emit& e, const Heads& x, int64_t repeat, bool transposed) {
  Shape shape{x.batch, x.heads, repeat, x.length, x.size};
  std::vector<int64_t> strides{x.strides[0], x.strides[1], 0, x.strides[2], x.strides[3]};
  if (transposed) {
    std::swap(shape[3], shape[4]);
    std::swap(strides[3], strides[4]);
  }
  return e.computed("$0", BP_DTYPE_FLOAT, shape, {{x.tensor, strides, 0}});
}

// Returns masked scores, or nullopt if nothing masks them.
std::optional<Tensor> masked(Emit& e, const Tensor& scores, int64_t past) {
  const Tensor mask = e.input(kMask), lengths = e.input(kLengths);
  constexpr int64_t kFar = int64_t{1} << 30;  // beyond every position
  const bool causal = e.node.int_attribute("is_causal", 0) != 0;
  const int64_t behind = std::min(e.node.int_attribute("left_window_size", -1), kFar);
  const int64_t ahead = causal ? 0 : std::min(e.node.int_attribute("right_window_size", -1), kFar);
  if (!mask && !lengths && ahead < 0 && behind < 0) return std::nullopt;
  std::string options = "-DMASK=" + (mask ? Emit::type(mask) : "f32");
  if (mask) options += " -DMASKED";
  if (mask && mask.dtype == BP_DTYPE_BOOL) options += " -DBOOLEAN";
  if (ahead >= 0) options += " -DAHEAD";
  if (behind >= 0) options += " -DBEHIND";
  if (lengths) options += " -DLENGTHS";
  std::vector<int64_t> strides(4);
  int64_t keys = 0;
  if (mask) {
    // The mask may have fewer keys than the scores; the kernel hides the others.
    keys = mask.shape.back();
    Shape seen = scores.shape;
    seen[3] = keys;
    if (keys > scores.shape[3] || (keys == 1 && scores.shape[3] != 1))
      throw sdk::Error(BP_TYPE_MISMATCH,
                       "a mask " + to_string(mask.shape) + " does not fit scores " + to_string(scores.shape));
    strides = broadcast_view(mask, seen).strides;
  }
  if (lengths && lengths.shape != Shape{scores.shape[0]})
    throw sdk::Error(BP_TYPE_MISMATCH, "lengths have shape " + to_string(lengths.shape) + " instead of [" +
                                           std::to_string(scores.shape[0]) + "], one for each sequence");
  const Tensor y = e.scratch(BP_DTYPE_FLOAT, scores.shape);
  e.launch("attention_mask", "attention_mask", options)
      .in(scores)
      .in(mask ? mask : scores)
      .in(lengths ? lengths : scores)
      .out(y)
      .arg(scores.count())
      .arg(scores.shape[1])
      .arg(scores.shape[2])
      .arg(scores.shape[3])
      .arg(strides[0])
      .arg(strides[1])
      .arg(strides[2])
      .arg(keys)
      .arg(past)
      .arg(ahead)
      .arg(behind)
      .range(scores.count());
  return y;
}

void emit_attention(Emit& e, std::string_view) {
  const Heads q = heads_of(e.input(kQuery), e.node.int_attribute("q_num_heads", 0));
  const int64_t kv_heads = e.node.int_attribute("kv_num_heads", 0);
  const Heads k = with_past(e, heads_of(e.input(kKey), kv_heads), kPastKey, 1);
  const Heads v = with_past(e, heads_of(e.input(kValue), kv_heads), kPastValue, 2);
  if (k.heads == 0 || q.heads % k.heads != 0 || v.heads != k.heads || q.size != k.size || k.length != v.length ||
      q.batch != k.batch || q.batch != v.batch)
    throw sdk::Error(BP_TYPE_MISMATCH, "queries " + to_string(q.shape()) + ", keys " + to_string(k.shape()) +
                                           " and values " + to_string(v.shape()) + " do not match");
  const int64_t repeat = q.heads / k.heads, batch = q.batch * q.heads, length = k.length;
  const int64_t past = e.has_input(kPastKey) ? e.shape(kPastKey)[2] : 0;

  Tensor scores = e.scratch(BP_DTYPE_FLOAT, {q.batch, q.heads, q.length, length});
  Product product{.a = laid_out(e, q, 1, false),
                  .b = laid_out(e, k, repeat, true),
                  .y = scores,
                  .batch = batch,
                  .m = q.length,
                  .n = length,
                  .k = q.size,
                  .a_count = batch,
                  .b_count = batch};
  // The compute types that the session allows are for fp32 nodes; nodes of 16-bit floats always sum in fp32.
  const uint32_t compute_types = e.node.input(0).dtype() == BP_DTYPE_FLOAT ? e.compute_types() : 0;
  product.compute_types = compute_types;
  product.alpha = e.node.attribute("scale") != nullptr ? e.node.float_attribute("scale", 1)
                                                       : 1 / std::sqrt(static_cast<float>(q.size));
  emit_product(e, product);

  // Output 3 receives the scores after the step that qk_matmul_output_mode selects.
  const int64_t shown = e.has_output(3) ? e.node.int_attribute("qk_matmul_output_mode", 0) : -1;
  const auto view_of = [](const Tensor& x) { return View{x, dense_strides(x.shape), 0}; };
  const auto show = [&](int64_t step) {
    if (step == shown) e.move(scores.shape, view_of(scores), view_of(e.output(3, scores.shape)));
  };
  show(0);
  if (const float cap = e.node.float_attribute("softcap", 0); cap != 0)
    scores = e.computed("tanh($0 / " + literal(cap) + ") * " + literal(cap), BP_DTYPE_FLOAT, scores.shape,
                        {view_of(scores)});
  show(1);
  const std::optional<Tensor> hidden = masked(e, scores, past);
  if (hidden) scores = *hidden;
  show(2);
  const Tensor weights = e.scratch(BP_DTYPE_FLOAT, scores.shape);
  emit_softmax(e, scores, weights, 3, "0");
  // Hidden keys have weight 0, also in rows in which every key is hidden.
  scores =
      hidden ? e.computed("$0 == -INFINITY ? 0 : $1", BP_DTYPE_FLOAT, scores.shape, {view_of(scores), view_of(weights)})
             : weights;
  show(3);

  const Shape result{q.batch, q.heads, q.length, v.size};
  const Tensor sums = e.scratch(BP_DTYPE_FLOAT, result);
  emit_product(e, {.a = scores,
                   .b = laid_out(e, v, repeat, false),
                   .y = sums,
                   .batch = batch,
                   .m = q.length,
                   .n = v.size,
                   .k = length,
                   .a_count = batch,
                   .b_count = batch,
                   .compute_types = compute_types});
  const bool packed = q.tensor.rank() == 3;
  const Tensor y = e.output(0, packed ? Shape{q.batch, q.length, q.heads * v.size} : result);
  std::vector<int64_t> strides = dense_strides(result);
  if (packed) strides = {q.length * q.heads * v.size, v.size, q.heads * v.size, 1};
  e.move(result, {sums, dense_strides(result), 0}, {y, strides, 0});
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
