// SPDX-License-Identifier: Apache-2.0
// Before the products, heads are copied to be contiguous, keys are transposed, and keys and values are repeated for the
// query heads that share them.
#include "ops/attend.h"

#include <algorithm>
#include <optional>

#include "ops/gemm.h"
#include "ops/softmax.h"

namespace backplane::gpu {

Heads heads_of(const Tensor& x, int64_t heads) {
  if (x.rank() == 4) return {x, x.shape[0], x.shape[1], x.shape[2], x.shape[3], dense_strides(x.shape)};
  if (heads <= 0 || x.shape[2] % heads != 0)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "shape " + to_string(x.shape) + " does not split into " + std::to_string(heads) + " heads");
  const int64_t length = x.shape[1], size = x.shape[2] / heads;
  return {x, x.shape[0], heads, length, size, {length * heads * size, size, heads * size, 1}};
}

namespace {

View view_of(const Tensor& x) {
  return {x, dense_strides(x.shape), 0};
}

// Copies heads to fp32, each `repeat` times; `transposed` swaps their two inner dimensions.
Tensor laid_out(Emit& e, const Heads& x, int64_t repeat, bool transposed) {
  Shape shape{x.batch, x.heads, repeat, x.length, x.size};
  std::vector<int64_t> strides{x.strides[0], x.strides[1], 0, x.strides[2], x.strides[3]};
  if (transposed) {
    std::swap(shape[3], shape[4]);
    std::swap(strides[3], strides[4]);
  }
  return e.computed("$0", BP_DTYPE_FLOAT, shape, {{x.tensor, strides, x.offset}});
}

// Returns masked scores, or nullopt if nothing masks them.
std::optional<Tensor> masked(Emit& e, const Tensor& scores, const AttentionRules& rules) {
  constexpr int64_t kFar = int64_t{1} << 30;  // beyond every position
  const int64_t behind = std::min(rules.behind, kFar), ahead = std::min(rules.ahead, kFar);
  const Tensor &mask = rules.mask.tensor, &lengths = rules.lengths;
  if (!mask && !lengths && ahead < 0 && behind < 0) return std::nullopt;
  std::string options = "-DMASK=" + (mask ? Emit::type(mask) : "f32");
  if (mask) options += " -DMASKED";
  if (mask && mask.dtype == BP_DTYPE_BOOL) options += " -DBOOLEAN";
  if (ahead >= 0) options += " -DAHEAD";
  if (behind >= 0) options += " -DBEHIND";
  if (lengths) options += " -DLENGTHS";
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
      .arg(rules.mask.strides[0])
      .arg(rules.mask.strides[1])
      .arg(rules.mask.strides[2])
      .arg(rules.mask.keys)
      .arg(rules.past)
      .arg(ahead)
      .arg(behind)
      .range(scores.count());
  return y;
}

// Returns the softmax of the scores, viewed in their shape. A sink is a further column, which is left out of the view.
View softmax(Emit& e, const Tensor& scores, const Tensor& sinks) {
  Shape shape = scores.shape;
  if (!sinks) {
    const Tensor weights = e.scratch(BP_DTYPE_FLOAT, shape);
    emit_softmax(e, scores, weights, 3, "0");
    return view_of(weights);
  }
  const int64_t keys = shape[3]++;
  const Tensor wide = e.scratch(BP_DTYPE_FLOAT, shape), weights = e.scratch(BP_DTYPE_FLOAT, shape);
  const std::vector<int64_t> strides = dense_strides(shape);
  e.compute("$0", scores.shape, {view_of(scores)}, {wide, strides, 0});
  e.compute("$0", {shape[0], shape[1], shape[2], 1}, {{sinks, {0, sinks.count() == 1 ? 0 : 1, 0, 0}, 0}},
            {wide, strides, keys});
  emit_softmax(e, wide, weights, 3, "0");
  return {weights, strides, 0};
}

}  // namespace

Tensor attend(Emit& e, const Heads& q, const Heads& k, const Heads& v, const AttentionRules& rules) {
  if (k.heads == 0 || q.heads % k.heads != 0 || v.heads != k.heads || q.size != k.size || k.length != v.length ||
      q.batch != k.batch || q.batch != v.batch)
    throw sdk::Error(BP_TYPE_MISMATCH, "queries " + to_string(q.shape()) + ", keys " + to_string(k.shape()) +
                                           " and values " + to_string(v.shape()) + " do not match");
  const int64_t repeat = q.heads / k.heads, batch = q.batch * q.heads, length = k.length;

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
  product.alpha = rules.scale;
  emit_product(e, product);

  const auto show = [&](int64_t step) {
    if (step == rules.shown) e.move(scores.shape, view_of(scores), view_of(e.output(3, scores.shape)));
  };
  show(0);
  if (rules.softcap != 0)
    scores = e.computed("tanh($0 / " + literal(rules.softcap) + ") * " + literal(rules.softcap), BP_DTYPE_FLOAT,
                        scores.shape, {view_of(scores)});
  show(1);
  const std::optional<Tensor> hidden = masked(e, scores, rules);
  if (hidden) scores = *hidden;
  show(2);
  // Hidden keys have weight 0, also in rows in which every key is hidden.
  const View weights = softmax(e, scores, rules.sinks);
  if (hidden)
    scores = e.computed("$0 == -INFINITY ? 0 : $1", BP_DTYPE_FLOAT, scores.shape, {view_of(scores), weights});
  else if (rules.sinks)
    scores = e.computed("$0", BP_DTYPE_FLOAT, scores.shape, {weights});
  else
    scores = weights.tensor;
  show(3);

  const Tensor results = e.scratch(BP_DTYPE_FLOAT, {q.batch, q.heads, q.length, v.size});
  emit_product(e, {.a = scores,
                   .b = laid_out(e, v, repeat, false),
                   .y = results,
                   .batch = batch,
                   .m = q.length,
                   .n = v.size,
                   .k = length,
                   .a_count = batch,
                   .b_count = batch,
                   .compute_types = compute_types});
  return results;
}

void write_attended(Emit& e, const Tensor& results, bool packed) {
  const Shape& shape = results.shape;
  const int64_t heads = shape[1], length = shape[2], size = shape[3];
  const Tensor y = e.output(0, packed ? Shape{shape[0], length, heads * size} : shape);
  std::vector<int64_t> strides = dense_strides(shape);
  if (packed) strides = {length * heads * size, size, heads * size, 1};
  e.move(shape, view_of(results), {y, strides, 0});
}

}  // namespace backplane::gpu
