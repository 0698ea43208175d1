// SPDX-License-Identifier: Apache-2.0
// Before products, heads are copied to be contiguous, keys are transposed, and keys and values are repeated for the
// query heads that share them.
#include "ops/attend.h"

#include <algorithm>
#include <bit>
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

// The rules that hide keys, as macros and arguments of kernels/attention_mask.cl and attention_rows.cl.
struct Masking {
  explicit Masking(const AttentionRules& rules)
      : rules(rules), ahead(std::min(rules.ahead, kFar)), behind(std::min(rules.behind, kFar)) {}
  bool hides() const { return rules.mask.tensor || rules.lengths || ahead >= 0 || behind >= 0; }
  std::string macros() const {
    const Tensor& mask = rules.mask.tensor;
    std::string options = " -DMASK=" + (mask ? Emit::type(mask) : "f32");
    if (mask) options += " -DMASKED";
    if (mask && mask.dtype == BP_DTYPE_BOOL) options += " -DBOOLEAN";
    if (ahead >= 0) options += " -DAHEAD";
    if (behind >= 0) options += " -DBEHIND";
    if (rules.lengths) options += " -DLENGTHS";
    return options;
  }

  static constexpr int64_t kFar = int64_t{1} << 30;  // beyond every position
  const AttentionRules& rules;
  const int64_t ahead, behind;
};

// Returns masked scores, or nullopt if nothing masks them.
std::optional<Tensor> masked(Emit& e, const Tensor& scores, const AttentionRules& rules) {
  const Masking masking(rules);
  if (!masking.hides()) return std::nullopt;
  const Tensor &mask = rules.mask.tensor, &lengths = rules.lengths;
  const Tensor y = e.scratch(BP_DTYPE_FLOAT, scores.shape);
  e.launch("attention_mask", "attention_mask", masking.macros())
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
      .arg(masking.ahead)
      .arg(masking.behind)
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

// The results, FLOAT [batch, query heads, queries, size of v].
Tensor attend_by_products(Emit& e, const Heads& q, const Heads& k, const Heads& v, const AttentionRules& rules) {
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

// Returns output 0 as a view along `shape`, [batch, heads, queries, size], packed or not.
View result_view(Emit& e, const Shape& shape, bool packed) {
  const int64_t heads = shape[1], length = shape[2], size = shape[3];
  const Tensor y = e.output(0, packed ? Shape{shape[0], length, heads * size} : shape);
  if (packed) return {y, {length * heads * size, size, heads * size, 1}, 0};
  return view_of(y);
}

// With few queries, the copies that products need cost more than the products. On PoCL (two cores of Zen 3; 1,024 keys,
// 32 heads of queries of size 128, 8 of keys), attention_rows.cl takes 0.37 of the products' time for one query, 0.95
// for 8.
constexpr int64_t kFewQueries = 4;

int64_t lanes_of(const DeviceCaps& caps) {
  const auto wanted = caps.kind == BP_DEVICE_CPU ? static_cast<size_t>(caps.float_lanes) : 64;
  return static_cast<int64_t>(std::bit_floor(std::max<size_t>(std::min(wanted, caps.max_group), 1)));
}

bool suits_rows(const DeviceCaps& caps, const Heads& q, const Heads& v, const AttentionRules& rules) {
  const int64_t lanes = lanes_of(caps);
  return rules.shown < 0 && q.length <= kFewQueries && lanes > 1 && q.size > 0 && v.size > 0 && v.size <= 32 * lanes &&
         static_cast<uint64_t>((q.size + 2 * lanes) * 4) <= caps.local_bytes;
}

void attend_by_rows(Emit& e, const Heads& q, const Heads& k, const Heads& v, const AttentionRules& rules,
                    const View& y) {
  const Masking masking(rules);
  const int64_t lanes = lanes_of(e.caps()), rows = q.batch * q.heads * q.length;
  const Tensor &mask = rules.mask.tensor, &lengths = rules.lengths, &sinks = rules.sinks;
  LaunchBuilder launch = e.launch("attention_rows", "attention_rows",
                                  "-DTYPE=" + Emit::type(q.tensor) + " -DLANES=" + std::to_string(lanes) +
                                      " -DSIZE=" + std::to_string(q.size) + " -DVSIZE=" + std::to_string(v.size) +
                                      masking.macros() + (rules.softcap != 0 ? " -DCAPPED" : "") +
                                      " -DSINK=" + (sinks ? Emit::type(sinks) + " -DWITH_SINK" : "f32"));
  launch.in(q.tensor)
      .in(k.tensor)
      .in(v.tensor)
      .in(mask ? mask : q.tensor)
      .in(lengths ? lengths : q.tensor)
      .in(sinks ? sinks : q.tensor)
      .out(y.tensor)
      .arg(q.heads)
      .arg(q.length)
      .arg(k.length)
      .arg(q.heads / k.heads);
  for (const Heads* heads : {&q, &k, &v})
    launch.arg(heads->strides[0]).arg(heads->strides[1]).arg(heads->strides[2]).arg(heads->offset);
  launch.arg(y.strides[0]).arg(y.strides[1]).arg(y.strides[2]);
  launch.arg(rules.mask.strides[0]).arg(rules.mask.strides[1]).arg(rules.mask.strides[2]).arg(rules.mask.keys);
  launch.arg(rules.past)
      .arg(masking.ahead)
      .arg(masking.behind)
      .arg(int64_t{sinks && sinks.count() > 1})
      .arg(rules.scale)
      .arg(rules.softcap)
      .groups({rows, 1, 1}, {static_cast<size_t>(lanes), 1, 1});
}

}  // namespace

void attend(Emit& e, const Heads& q, const Heads& k, const Heads& v, const AttentionRules& rules, bool packed) {
  if (k.heads == 0 || q.heads % k.heads != 0 || v.heads != k.heads || q.size != k.size || k.length != v.length ||
      q.batch != k.batch || q.batch != v.batch)
    throw sdk::Error(BP_TYPE_MISMATCH, "queries " + to_string(q.shape()) + ", keys " + to_string(k.shape()) +
                                           " and values " + to_string(v.shape()) + " do not match");
  const Shape shape{q.batch, q.heads, q.length, v.size};
  if (suits_rows(e.caps(), q, v, rules)) return attend_by_rows(e, q, k, v, rules, result_view(e, shape, packed));
  const Tensor results = attend_by_products(e, q, k, v, rules);
  e.move(shape, view_of(results), result_view(e, shape, packed));
}

}  // namespace backplane::gpu
