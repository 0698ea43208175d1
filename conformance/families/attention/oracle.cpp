// SPDX-License-Identifier: Apache-2.0
// Oracles of Attention, over several heads, and of RotaryEmbedding.
#include <algorithm>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

// Returns an input as [batch, heads, length, size]. The input may also have the shape [batch, length, heads·size].
Array with_heads(const Array& x, int64_t heads) {
  if (x.rank() == 4) return x;
  require(x.rank() == 3 && heads > 0 && x.extents[2] % heads == 0,
          "an input must be of rank 4, or of rank 3 with a positive number of heads that divides its last extent");
  const int64_t size = x.extents[2] / heads;
  Array result(x.dtype, {x.extents[0], heads, x.extents[1], size});
  for_each_index(result.extents, [&](const Index& at) { result.at(at) = x.at({at[0], at[2], at[1] * size + at[3]}); });
  return result;
}

// softmax(scale·Q·Kᵀ + mask)·V, without past keys and values, lengths or further outputs.
References attention(const Call& call) {
  const bool is_flat = call.in(0, 3).rank() == 3;
  require_known(!call.has(4) && !call.has(5) && !call.has(6) && call.output_count() <= 1,
                "the oracle supports neither past keys and values, nor lengths, nor further outputs");
  const Array q = with_heads(call.in(0, 3), call.integer("q_num_heads")),
              k = with_heads(call.in(1, 3), call.integer("kv_num_heads")),
              v = with_heads(call.in(2, 3), call.integer("kv_num_heads"));
  require(is_float(q.dtype), "Q is not floating-point");
  require(k.dtype == q.dtype && v.dtype == q.dtype, "the inputs have different types");
  const int64_t batch = q.extents[0], heads = q.extents[1], length = q.extents[2], size = q.extents[3],
                keys = k.extents[2];
  require(k.extents[0] == batch && v.extents[0] == batch && k.extents[3] == size && v.extents[2] == keys &&
              v.extents[1] == k.extents[1] && k.extents[1] > 0 && heads % k.extents[1] == 0 && keys > 0 && size > 0,
          "Q, K and V do not fit each other, or K has no heads, no keys or keys without elements");
  require_steps(static_cast<double>(batch * heads) * static_cast<double>(length * keys) *
                static_cast<double>(size + v.extents[3]));
  // Version 24 masks the keys beyond the mask's last axis. With one entry on that axis and several keys, the entry
  // could be for all keys, as in version 23, or only for the first.
  const int64_t shown = call.has(3) && call.in(3).rank() > 0 ? call.in(3).extents.back() : keys;
  require(shown <= keys, "the mask has more entries on its last axis than there are keys");
  require_known(shown != 1 || keys == 1,
                "ONNX does not say whether a mask with one entry on its last axis is for all keys");
  const double given = call.real("scale"), scale = given == 0 ? 1 / std::sqrt(static_cast<double>(size)) : given,
               cap = call.real("softcap");
  const bool is_causal = call.integer("is_causal") != 0;
  // How many keys before and after its own position a query sees; a negative number means all.
  const int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
  const int64_t shared = heads / k.extents[1];
  // A device may multiply both Q and K by the root of the scale, which adds a few roundings to each product.
  const Tracked factor(scale, 8 * scale);

  std::vector<Tracked> elements;
  const Extents shape = {batch, heads, length, v.extents[3]};
  std::vector<Tracked> weights(static_cast<size_t>(keys));
  for (int64_t row = 0; row < batch * heads * length; ++row) {
    const int64_t b = row / (heads * length), h = row / length % heads, i = row % length;
    double top = -HUGE_VAL;
    std::vector<bool> is_masked(weights.size());
    for (int64_t j = 0; j < keys; ++j) {
      TrackedSum sum(q.dtype);
      for (int64_t e = 0; e < size; ++e) sum.add(q.at({b, h, i, e}), k.at({b, h / shared, j, e}));
      Tracked& score = weights[static_cast<size_t>(j)];
      score = sum.result() * factor;
      if (cap != 0) score = Tracked(cap) * tanh(score / Tracked(cap));
      is_masked[static_cast<size_t>(j)] =
          j >= shown || (is_causal && j > i) || (left >= 0 && i - j > left) || (right >= 0 && j - i > right);
      if (call.has(3) && j < shown) {
        const double mask = call.in(3).broadcast_at({b, h, i, j});
        if (call.in(3).dtype == BP_DTYPE_BOOL || mask == -HUGE_VAL)
          is_masked[static_cast<size_t>(j)] = is_masked[static_cast<size_t>(j)] || mask == 0 || mask == -HUGE_VAL;
        else
          score = score + Tracked(mask);
      }
      if (!is_masked[static_cast<size_t>(j)]) top = std::max(top, score.value);
    }
    // With windows, a row in which every key is masked is 0. Versions of ONNX that are older than windows define NaN.
    if (top == -HUGE_VAL && (left >= 0 || right >= 0)) {
      elements.insert(elements.end(), static_cast<size_t>(v.extents[3]), Tracked(0.0));
      continue;
    }
    require_known(std::isfinite(top), "in a row, every key is masked, or the largest score is not finite");
    TrackedSum total(q.dtype);
    for (size_t j = 0; j < weights.size(); ++j) {
      weights[j] = is_masked[j] ? Tracked(0.0) : exp(weights[j] - Tracked(top));
      total.add(weights[j]);
    }
    const Tracked sum = total.result();
    for (int64_t e = 0; e < v.extents[3]; ++e) {
      TrackedSum mixed(q.dtype);
      for (int64_t j = 0; j < keys; ++j) mixed.add(weights[static_cast<size_t>(j)] / sum, v.at({b, h / shared, j, e}));
      elements.push_back(mixed.result());
    }
  }
  Reference result = tracked_reference(q.dtype, shape, elements);
  if (is_flat) {  // reshaped to [batch, length, heads·size]
    const Reference split = result;
    result.value.extents = {batch, length, heads * v.extents[3]};
    size_t to = 0;
    for_each_index({batch, length, heads, v.extents[3]}, [&](const Index& at) {
      const auto from = static_cast<size_t>(((at[0] * heads + at[2]) * length + at[1]) * v.extents[3] + at[3]);
      result.value.values[to] = split.value.values[from];
      result.scale[to] = result.typical[to] = split.scale[from];
      ++to;
    });
  }
  return {result};
}

// Rotates pairs among the first `rotary` elements of each head, by angles that depend on the position in the sequence.
References rotary_embedding(const Call& call) {
  const Array &x = call.in(0, 3), &cosines = call.in(1, 2), &sines = call.in(2, 2);
  const bool is_flat = x.rank() == 3;
  const Array split = with_heads(x, is_flat ? call.integer("num_heads") : 1);
  require(is_float(x.dtype), "X is not floating-point");
  require(cosines.extents == sines.extents && cosines.rank() == (call.has(3) ? 2 : 3),
          "the caches must have one shape, of rank 2 with position_ids and of rank 3 without");
  const int64_t batch = split.extents[0], heads = split.extents[1], length = split.extents[2], size = split.extents[3];
  const int64_t given = call.integer("rotary_embedding_dim"), rotary = given == 0 ? size : given;
  require(rotary > 0 && rotary <= size && rotary % 2 == 0 && cosines.extents.back() == rotary / 2,
          "a head must have an even number of rotated elements, twice the last extent of the caches and not 0");
  const bool interleaved = call.integer("interleaved") != 0;
  std::vector<Tracked> elements;
  const Extents shape = is_flat ? Extents{batch, length, heads, size} : split.extents;
  for_each_index(shape, [&](const Index& index) {
    const int64_t b = index[0], h = index[is_flat ? 2 : 1], s = index[is_flat ? 1 : 2], e = index[3];
    if (e >= rotary) {
      elements.emplace_back(split.at({b, h, s, e}));
      return;
    }
    const int64_t pair = interleaved ? e / 2 : e % (rotary / 2);
    const bool is_second = interleaved ? e % 2 == 1 : e >= rotary / 2;
    const Index place = call.has(3) ? Index{whole(call.in(3).at({b, s})), pair} : Index{b, s, pair};
    const double first = split.at({b, h, s, interleaved ? 2 * pair : pair}),
                 second = split.at({b, h, s, interleaved ? 2 * pair + 1 : pair + rotary / 2}), c = cosines.at(place),
                 d = sines.at(place);
    TrackedSum sum(x.dtype);
    sum.add(is_second ? second : first, c);
    sum.add(is_second ? first : -second, d);
    elements.push_back(sum.result());
  });
  return {tracked_reference(x.dtype, x.extents, elements)};
}

const Operator kOperators[] = {
    {"Attention", {23, 24, 25}, attention},
    {"RotaryEmbedding", {23}, rotary_embedding},
};

}  // namespace

std::span<const Operator> attention_operators() {
  return kOperators;
}

}  // namespace backplane::conform
