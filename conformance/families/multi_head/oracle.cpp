// SPDX-License-Identifier: Apache-2.0
// Oracles of com.microsoft's attention of several heads whose queries, keys and values are rows of all heads: given
// (MultiHeadAttention), or computed from one input (Attention, QAttention). And of com.microsoft's RotaryEmbedding.
#include <algorithm>
#include <array>

#include "judge/attend.h"
#include "judge/used_outputs.h"

namespace backplane::conform {
namespace {

using Row = std::vector<Tracked>;

// Whether key `j` is masked for query `i` of batch `b`. The mask has one of the forms [batch] and [3·batch + 2], which
// begin with the end of each sequence; [2·batch], all ends, then all starts; [batch, 1], which masks no key; [batch,
// keys]; or [batch, queries, keys].
bool is_masked(const Array& mask, int64_t batch, int64_t b, int64_t i, int64_t j) {
  if (mask.rank() == 1) {
    require(mask.count() == batch || mask.count() == 2 * batch || mask.count() == 3 * batch + 2,
            "the mask does not fit the batch");
    const bool has_start = mask.count() == 2 * batch;
    return static_cast<double>(j) >= mask.at({b}) || (has_start && static_cast<double>(j) < mask.at({batch + b}));
  }
  if (mask.rank() == 2) return mask.extents[1] > 1 && mask.at({b, j}) <= 0;
  return mask.at({b, i, j}) <= 0;
}

// The extents of a call, its mask, and the bias that is added to the scores (`added`).
struct MultiHead {
  const Call& call;
  int64_t batch, heads, length, past, keys, size, value_size;
  const Array *mask, *added;  // either may be null

  // Computes the result, [batch, length, heads · value_size]. `query`, `key` and `value` return the row of a batch, a
  // head and a position.
  template <class Query, class Key, class Value>
  Reference result(bp_dtype_t type, const Query& query, const Key& key, const Value& value) const {
    require_steps(static_cast<double>(batch * heads * length) * static_cast<double>(keys * (size + value_size)));
    require(added == nullptr || (added->rank() == 4 && added->extents[2] == length && added->extents[3] == keys),
            "the bias of the scores does not fit them");
    const double given = call.real("scale"), filter = call.real("mask_filter_value", -10000);
    const Tracked scale(given != 0 ? given : 1 / std::sqrt(static_cast<double>(size)), 4);
    const bool is_causal = call.integer("unidirectional") != 0;
    Row results(static_cast<size_t>(batch * length * heads * value_size));
    for_each_index({batch, heads, length}, [&](const Index& at) {
      const int64_t b = at[0], h = at[1], i = at[2];
      const auto score = [&](int64_t j, const Tracked& product) {
        if (is_causal && j > past + i) return Tracked(-HUGE_VAL);
        Tracked sum = product * scale;
        if (mask != nullptr && is_masked(*mask, batch, b, i, j)) sum = sum + Tracked(filter);
        return added == nullptr ? sum : sum + Tracked(added->broadcast_at({b, h, i, j}));
      };
      const Row row = attend(
          query(b, h, i), [&](int64_t j) { return key(b, h, j); }, [&](int64_t j) { return value(b, h, j); }, keys,
          score);
      std::copy(row.begin(), row.end(), results.begin() + ((b * length + i) * heads + h) * value_size);
    });
    return tracked_reference(type, {batch, length, heads * value_size}, results);
  }
  // All keys or values, [batch, heads, keys, width].
  template <class At>
  Row cache(const At& row) const {
    Row all;
    for_each_index({batch, heads, keys}, [&](const Index& at) {
      for (const Tracked& one : row(at[0], at[1], at[2])) all.push_back(one);
    });
    return all;
  }
};

Row row_of(const Array& x, Index at, int64_t width) {
  Row row;
  at.push_back(0);
  for (; at.back() < width; ++at.back()) row.emplace_back(x.at(at));
  return row;
}

void require_off(const Call& call, std::initializer_list<std::string_view> attributes) {
  for (const std::string_view name : attributes)
    require_known(call.integer(name) == 0, "the oracle supports neither rotation nor shared buffers");
}

const Array* optional_input(const Call& call, size_t slot) {
  return call.has(slot) ? &call.in(slot) : nullptr;
}

// --- Attention and QAttention ---

// Queries, keys and values of all heads, in rows [batch, length, Σ widths].
struct Combined {
  const Call& call;
  Row rows;
  std::array<int64_t, 3> widths;
  const Array *mask, *past, *added;  // each may be null
  bp_dtype_t type;
};

// Outputs: the result, and all keys and values. `past` has the keys and values of earlier calls, [2, batch, heads,
// positions, size].
References combined_attention(const Combined& c) {
  const Extents& x = c.call.in(0, 3).extents;
  const int64_t heads = c.call.integer("num_heads"), batch = x[0], length = x[1];
  for (const int64_t width : c.widths)
    require(heads > 0 && width >= 0 && width % heads == 0, "num_heads is not a positive divisor of the widths");
  require(c.widths[0] == c.widths[1] && (c.past == nullptr || c.widths[0] == c.widths[2]),
          "queries and keys, or the past keys and values, have different sizes");
  const int64_t size = c.widths[0] / heads, value_size = c.widths[2] / heads;
  const int64_t past = c.past == nullptr ? 0 : c.past->extents.at(3);
  require(c.past == nullptr || c.past->extents == Extents{2, batch, heads, past, size}, "past does not fit the input");
  const MultiHead m{c.call, batch, heads, length, past, past + length, size, value_size, c.mask, c.added};
  const int64_t all = c.widths[0] + c.widths[1] + c.widths[2];
  const auto projected = [&](int64_t first, int64_t width, int64_t b, int64_t h, int64_t t) {
    const auto from = c.rows.begin() + (b * length + t) * all + first + h * width;
    return Row(from, from + width);
  };
  const auto query = [&](int64_t b, int64_t h, int64_t t) { return projected(0, size, b, h, t); };
  const auto key = [&](int64_t b, int64_t h, int64_t t) {
    return t < past ? row_of(*c.past, {0, b, h, t}, size) : projected(c.widths[0], size, b, h, t - past);
  };
  const auto value = [&](int64_t b, int64_t h, int64_t t) {
    return t < past ? row_of(*c.past, {1, b, h, t}, value_size)
                    : projected(c.widths[0] + c.widths[1], value_size, b, h, t - past);
  };
  References results = {m.result(c.type, query, key, value)};
  if (c.call.output_count() < 2) return results;
  require_known(size == value_size, "keys and values of different sizes have no common cache");
  Row present = m.cache(key);
  for (const Tracked& one : m.cache(value)) present.push_back(one);
  results.push_back(tracked_reference(c.type, {2, batch, heads, m.keys, size}, present));
  return results;
}

// Inputs: x, weights, bias, a mask, past keys and values, and a bias of the scores.
References attention_of_input(const Call& call) {
  require_off(call, {"do_rotary", "past_present_share_buffer"});
  const Array &x = call.in(0, 3), &w = call.in(1, 2);
  require(x.rank() == 3 && w.rank() == 2 && w.extents[0] == x.extents[2] && is_float(x.dtype) && w.dtype == x.dtype,
          "X and the weights are not floating-point, or do not fit each other");
  const int64_t width = w.extents[1];
  const Extents sizes = call.ints("qkv_hidden_sizes", {width / 3, width / 3, width / 3});
  require(sizes.size() == 3, "qkv_hidden_sizes does not have three numbers");
  for (const int64_t one : sizes) require(one >= 0 && one <= width, "a size is outside the columns of the weights");
  require(sizes[0] + sizes[1] + sizes[2] == width, "the sizes do not add up to the columns of the weights");
  require_steps(static_cast<double>(x.count()) * static_cast<double>(width));
  Row rows;
  for_each_index({x.extents[0], x.extents[1], width}, [&](const Index& at) {
    TrackedSum sum(x.dtype);
    for (int64_t i = 0; i < x.extents[2]; ++i) sum.add(x.at({at[0], at[1], i}), w.at({i, at[2]}));
    rows.push_back(sum.result());
    if (call.has(2)) rows.back() = rows.back() + Tracked(call.vector(2, width)[static_cast<size_t>(at[2])]);
  });
  return combined_attention({call,
                             std::move(rows),
                             {sizes[0], sizes[1], sizes[2]},
                             optional_input(call, 3),
                             optional_input(call, 4),
                             optional_input(call, 5),
                             x.dtype});
}

// Inputs: x, weights, bias, the scales of both, a mask, the zero points of both, and past keys and values.
References qattention(const Call& call) {
  const Array &x = call.in(0, 3), &w = call.in(1, 2);
  require(x.rank() == 3 && w.rank() == 2 && w.extents[0] == x.extents[2], "X and the weights do not fit each other");
  const int64_t width = w.extents[1];
  require(width % 3 == 0, "the weights do not have the columns of queries, keys and values");
  require_steps(static_cast<double>(x.count()) * static_cast<double>(width));
  const std::vector<double>& bias = call.vector(2, width);
  // A column's element of a scale or zero point, which has one value for all columns or one for each.
  const auto of_column = [&](size_t slot, int64_t column) {
    if (!call.has(slot)) return 0.0;
    const Array& all = call.in(slot);
    return all.count() == 1 ? all.values[0] : all.at({column});
  };
  const double zero = call.has(6) ? call.single(6) : 0;
  Row rows;
  for_each_index({x.extents[0], x.extents[1], width}, [&](const Index& at) {
    double sum = 0;
    for (int64_t i = 0; i < w.extents[0]; ++i)
      sum += (x.at({at[0], at[1], i}) - zero) * (w.at({i, at[2]}) - of_column(7, at[2]));
    const Tracked scale = Tracked(call.single(3)) * Tracked(of_column(4, at[2]));
    rows.push_back(Tracked(sum) * scale + Tracked(bias[static_cast<size_t>(at[2])]));
  });
  return combined_attention({call,
                             std::move(rows),
                             {width / 3, width / 3, width / 3},
                             optional_input(call, 5),
                             optional_input(call, 8),
                             nullptr,
                             call.in(2).dtype});
}

// --- MultiHeadAttention ---

// Inputs: query [batch, length, heads · size], key and value with rows of all heads or as [batch, heads, positions,
// size], the bias of all three, a mask, a bias of the scores, and past keys and values. Outputs: the result, and
// all keys and values.
References multi_head_attention(const Call& call) {
  const Array &q = call.in(0, 3), &k = call.in(1, 3), &v = call.in(2, 3);
  const int64_t heads = call.integer("num_heads"), batch = q.extents[0], length = q.extents[1];
  require(is_float(q.dtype) && k.dtype == q.dtype && v.dtype == q.dtype, "the inputs are not of one real type");
  require(q.rank() == 3 && heads > 0 && q.extents[2] % heads == 0 && k.rank() == v.rank() && k.rank() <= 4,
          "num_heads is not a positive divisor of the queries, or keys or values do not fit each other");
  const bool has_heads = k.rank() == 4;
  const int64_t size = q.extents[2] / heads, fresh = k.extents[has_heads ? 2 : 1],
                value_size = has_heads ? v.extents[3] : v.extents[2] / heads,
                past = call.has(6) ? call.in(6, 4).extents[2] : 0;
  require(
      has_heads
          ? k.extents == Extents{batch, heads, fresh, size} && v.extents == Extents{batch, heads, fresh, value_size}
          : k.extents == Extents{batch, fresh, heads * size} && v.extents == Extents{batch, fresh, heads * value_size},
      "keys or values do not fit the queries");
  require(call.has(6) == call.has(7), "past_key and past_value are not both there");
  require(!call.has(6) || (call.in(6).extents == Extents{batch, heads, past, size} &&
                           call.in(7).extents == Extents{batch, heads, past, value_size}),
          "past_key or past_value does not fit the queries");
  require_known(!has_heads || (!call.has(3) && !call.has(6)), "keys with an axis of heads take no bias and no past");
  const std::vector<double>* bias = call.has(3) ? &call.vector(3, heads * (2 * size + value_size)) : nullptr;
  const auto biased = [&](const Array& x, int64_t first, int64_t width, int64_t b, int64_t h, int64_t t) {
    Row row;
    for (int64_t e = 0; e < width; ++e) {
      const int64_t column = h * width + e;
      row.emplace_back(x.at({b, t, column}));
      if (bias != nullptr) row.back() = row.back() + Tracked((*bias)[static_cast<size_t>(first + column)]);
    }
    return row;
  };
  const auto query = [&](int64_t b, int64_t h, int64_t t) { return biased(q, 0, size, b, h, t); };
  const auto key = [&](int64_t b, int64_t h, int64_t t) {
    if (has_heads) return row_of(k, {b, h, t}, size);
    return t < past ? row_of(call.in(6), {b, h, t}, size) : biased(k, heads * size, size, b, h, t - past);
  };
  const auto value = [&](int64_t b, int64_t h, int64_t t) {
    if (has_heads) return row_of(v, {b, h, t}, value_size);
    return t < past ? row_of(call.in(7), {b, h, t}, value_size)
                    : biased(v, 2 * heads * size, value_size, b, h, t - past);
  };
  const MultiHead m{call,
                    batch,
                    heads,
                    length,
                    past,
                    past + fresh,
                    size,
                    value_size,
                    optional_input(call, 4),
                    optional_input(call, 5)};
  return used_outputs(call, {m.result(q.dtype, query, key, value),
                             tracked_reference(q.dtype, {batch, heads, m.keys, size}, m.cache(key)),
                             tracked_reference(q.dtype, {batch, heads, m.keys, value_size}, m.cache(value))});
}

// --- RotaryEmbedding ---

// ONNX's operator with the inputs in another order. One position is that of the first element of every sequence, and
// without num_heads, the caches determine the size of a head.
References rotary_embedding_of_positions(const Call& call) {
  require_known(call.real("scale", 1) == 1 && call.integer("is_packed_batching") == 0,
                "the oracle supports neither a scale nor packed sequences");
  const Array &x = call.in(0, 3), &positions = call.in(1, 1), &cosines = call.in(2, 2), &sines = call.in(3, 2);
  require(!is_float(positions.dtype), "the positions are not integers");
  const int64_t batch = x.extents[0], length = x.extents[x.rank() == 3 ? 1 : 2];
  Array all(BP_DTYPE_INT64, {batch, length});
  for_each_index(all.extents, [&](const Index& at) {
    all.at(at) = positions.rank() == 1 ? call.single(1) + static_cast<double>(at[1]) : positions.at(at);
  });
  int64_t heads = call.integer("num_heads");
  if (heads == 0 && x.rank() == 3) {
    require(cosines.extents[1] > 0 && x.extents[2] % (2 * cosines.extents[1]) == 0, "the caches do not fit X");
    heads = x.extents[2] / (2 * cosines.extents[1]);
  }
  const Attributes attributes = {{"interleaved", call.integer("interleaved")},
                                 {"num_heads", heads},
                                 {"rotary_embedding_dim", call.integer("rotary_embedding_dim")}};
  return compute("RotaryEmbedding", Call({&x, &cosines, &sines, &all}, attributes, 1));
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"com.microsoft.Attention", {1}, attention_of_input, kMicrosoft},
    {"MultiHeadAttention", {1}, multi_head_attention, kMicrosoft},
    {"QAttention", {1}, qattention, kMicrosoft},
    {"com.microsoft.RotaryEmbedding", {1}, rotary_embedding_of_positions, kMicrosoft},
};

}  // namespace

std::span<const Operator> multi_head_operators() {
  return kOperators;
}

}  // namespace backplane::conform
