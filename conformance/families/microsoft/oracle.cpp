// SPDX-License-Identifier: Apache-2.0
// Oracles of operators of com.microsoft, which ONNX Runtime defines.
#include <algorithm>
#include <optional>

#include "judge/attend.h"

namespace backplane::conform {
namespace {

// Adds the embeddings of each word, of its position and, if there is a segment embedding, of its segment, and
// normalizes the sum. The second output holds the number of ones in each sequence's mask, or 0 without a mask, and the
// third holds the sums.
References embed_layer_normalization(const Call& call) {
  const Array &ids = call.in(0, 2), &words = call.in(2, 2), &positions = call.in(3, 2);
  require(ids.rank() == 2 && words.rank() == 2 && positions.rank() == 2, "the ids or embeddings are not matrices");
  const int64_t batch = ids.extents[0], length = ids.extents[1], width = words.extents[1];
  require(is_float(words.dtype) && width > 0, "the word embeddings are not floating-point, or have no columns");
  require(!call.has(1) || call.has(4), "segment_ids has no segment_embedding");
  for (const size_t slot : {1, 7})
    require(!call.has(slot) || call.in(slot).extents == ids.extents,
            "segment_ids or mask differs from input_ids in shape");
  const std::vector<double>&gamma = call.vector(5, width), &beta = call.vector(6, width);
  const auto element = [&](const Array& table, double row, int64_t i) { return Tracked(table.at({whole(row), i})); };
  const Tracked epsilon(call.real("epsilon", 1e-12f)), count(static_cast<double>(width));
  std::vector<Tracked> results, sums;
  Array lengths(BP_DTYPE_INT32, {batch});
  for_each_index(ids.extents, [&](const Index& at) {
    const double position = call.has(8) ? call.in(8).broadcast_at(at) : static_cast<double>(at[1]);
    TrackedSum total(words.dtype), squares(words.dtype);
    const size_t first = sums.size();
    for (int64_t i = 0; i < width; ++i) {
      Tracked sum = element(words, ids.at(at), i) + element(positions, position, i);
      if (call.has(4)) sum = sum + element(call.in(4), call.has(1) ? call.in(1).at(at) : 0, i);
      sums.push_back(sum);
      total.add(sum);
    }
    const Tracked mean = total.result() / count;
    for (size_t i = first; i < sums.size(); ++i) squares.add(sums[i] - mean, sums[i] - mean);
    const Tracked deviation = sqrt(squares.result() / count + epsilon);
    for (size_t i = first; i < sums.size(); ++i)
      results.push_back((sums[i] - mean) / deviation * Tracked(gamma[i - first]) + Tracked(beta[i - first]));
    if (call.has(7)) lengths.at({at[0]}) += call.in(7).at(at) == 1;
  });
  const Extents shape = {batch, length, width};
  return {tracked_reference(words.dtype, shape, results), Reference(std::move(lengths), Rule::exact()),
          tracked_reference(words.dtype, shape, sums)};
}

// Moves the last axis to index 1, or the axis at index 1 to the end.
Extents moved(const Extents& extents, bool to_front) {
  Extents result = extents;
  if (to_front)
    std::rotate(result.begin() + 1, result.end() - 1, result.end());
  else
    std::rotate(result.begin() + 1, result.begin() + 2, result.end());
  return result;
}
Array with_channels_first(const Array& x) {
  Array result(x.dtype, moved(x.extents, true));
  for_each_index(x.extents, [&](const Index& at) { result.at(moved(at, true)) = x.at(at); });
  return result;
}

// The Conv of X [N, positions…, C] and W [M, kernel…, C / group].
References nhwc_conv(const Call& call) {
  const Array x = with_channels_first(call.in(0, 3)), w = with_channels_first(call.in(1, 3));
  std::vector<const Array*> inputs = {&x, &w};
  if (call.has(2)) inputs.push_back(&call.in(2));
  const Reference conv = compute("Conv", Call(inputs, call.attributes(), 1)).at(0);
  Reference result = conv;
  result.value.extents = moved(conv.value.extents, false);
  result.scale.clear();
  Array scales(BP_DTYPE_DOUBLE, conv.value.extents);
  scales.values = conv.scale;
  for_each_index(result.value.extents, [&](const Index& at) {
    result.value.at(at) = conv.value.at(moved(at, true));
    result.scale.push_back(scales.at(moved(at, true)));
  });
  return {result};
}

// A call of GroupQueryAttention. Queries, keys and values are heads of rows of inputs 0 to 2, or all of input 0.
class GroupQuery {
  const Call& call_;
  const Array& x_;
  const bool is_packed_;
  int64_t total_;

 public:
  explicit GroupQuery(const Call& call) : call_(call), x_(call.in(0, 3)), is_packed_(!call.has(1)) {
    require(is_float(x_.dtype) && x_.rank() == 3 && heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
            "the queries are not floating-point or not of rank 3, or num_heads is not a multiple of kv_num_heads");
    const int64_t row = is_packed_ ? heads + 2 * kv_heads : heads;
    require(x_.extents[2] % row == 0, "the heads do not divide the queries");
    batch = x_.extents[0], length = x_.extents[1], size = x_.extents[2] / row;
    const Extents fresh = {batch, length, kv_heads * size};
    require(is_packed_ || (call.in(1, 3).extents == fresh && call.in(2, 3).extents == fresh),
            "keys or values do not fit the queries");
    past = call.has(3) ? call.in(3, 4).extents[2] : 0;
    for (const size_t slot : {3, 4})
      require(!call.has(slot) || call.in(slot).extents == Extents{batch, kv_heads, past, size},
              "past_key or past_value does not fit the queries");
    total_ = whole(call.single(6));
    require(total_ >= 0 && call.in(5).count() == batch, "total_sequence_length is negative, or seqlens_k does not fit");
    capacity = std::max(past, total_);
    for (int64_t b = 0; b < batch; ++b)
      require(begin(b) >= 0 && begin(b) <= past && begin(b) + length <= capacity,
              "seqlens_k does not fit the new tokens and the caches");
  }

  const int64_t heads = call_.integer("num_heads"), kv_heads = call_.integer("kv_num_heads");
  int64_t batch, length, size;
  int64_t past, capacity;  // the numbers of positions in the caches before and after the call

  // The position of the first new token. If the new tokens are the whole sequence, it is 0, even for a shorter sequence
  // of the batch.
  int64_t begin(int64_t b) const {
    return length == total_ ? 0 : whole(call_.in(5).values[static_cast<size_t>(b)]) + 1 - length;
  }
  // The query, key or value (`which` 0 to 2) of new token `t`.
  std::vector<Tracked> row(int64_t which, int64_t b, int64_t h, int64_t t) const {
    const int64_t skipped = which == 0 ? 0 : which == 1 ? heads : heads + kv_heads;
    const Array& from = is_packed_ ? x_ : call_.in(static_cast<size_t>(which));
    std::vector<Tracked> all;
    for (int64_t e = 0; e < size; ++e) all.emplace_back(from.at({b, t, ((is_packed_ ? skipped : 0) + h) * size + e}));
    return which == 2 || call_.integer("do_rotary", 0) == 0 ? all : rotated(all, b, t);
  }
  // The key or value at a position of a cache; zeros after the new tokens.
  std::vector<Tracked> cached(int64_t which, int64_t b, int64_t h, int64_t position) const {
    if (position >= begin(b) + length) return std::vector<Tracked>(static_cast<size_t>(size));
    if (position >= begin(b)) return row(which, b, h, position - begin(b));
    std::vector<Tracked> all;
    for (int64_t e = 0; e < size; ++e)
      all.emplace_back(call_.in(static_cast<size_t>(which) + 2).at({b, h, position, e}));
    return all;
  }

 private:
  std::vector<Tracked> rotated(const std::vector<Tracked>& x, int64_t b, int64_t t) const {
    const Array &cosines = call_.in(7, 2), &sines = call_.in(8, 2);
    const int64_t half = cosines.extents[1];
    require(2 * half <= size && sines.extents == cosines.extents, "cos_cache or sin_cache does not fit the heads");
    const bool interleaved = call_.integer("rotary_interleaved", 0) != 0;
    const int64_t line = call_.has(9) ? whole(call_.in(9).values[static_cast<size_t>(b * length + t)]) : begin(b) + t;
    std::vector<Tracked> result = x;
    for (int64_t pair = 0; pair < half; ++pair) {
      const auto first = static_cast<size_t>(interleaved ? 2 * pair : pair),
                 second = static_cast<size_t>(interleaved ? 2 * pair + 1 : pair + half);
      const Tracked c = cosines.at({line, pair}), d = sines.at({line, pair});
      TrackedSum sum(x_.dtype), other(x_.dtype);
      sum.add(x[first], c);
      sum.add(Tracked(-x[second].value), d);
      other.add(x[second], c);
      other.add(x[first], d);
      // The rotated number is stored in the type of the inputs, or used as it is.
      result[first] = sum.result() + Tracked(0.0);
      result[second] = other.result() + Tracked(0.0);
    }
    return result;
  }
};

// Outputs: the result, and the caches of keys (rotated) and values.
References group_query_attention(const Call& call) {
  const GroupQuery g(call);
  require_steps(static_cast<double>(g.batch * g.heads * g.length) * static_cast<double>(g.capacity * g.size));
  const double given = call.real("scale", 0), cap = call.real("softcap", 0);
  const Tracked scale(given != 0 ? given : 1 / std::sqrt(static_cast<double>(g.size)), 4);
  const int64_t window = call.integer("local_window_size", -1), shared = g.heads / g.kv_heads;
  require(window == -1 || window > 0, "local_window_size must be -1 or positive");
  const bool is_smooth = call.integer("smooth_softmax", 0) == 1;
  const bp_dtype_t type = call.in(0).dtype;
  std::vector<Tracked> results(static_cast<size_t>(g.batch * g.length * g.heads * g.size));
  for_each_index({g.batch, g.heads, g.length}, [&](const Index& at) {
    const int64_t b = at[0], h = at[1], own = g.begin(b) + at[2];
    const auto score = [&](int64_t j, const Tracked& product) {
      if (j > own || (window > 0 && own - j >= window)) return Tracked(-HUGE_VAL);
      Tracked result = product * scale;
      if (cap != 0) result = Tracked(cap) * tanh(result / Tracked(cap));
      return call.has(10) ? result + Tracked(call.in(10).broadcast_at({b, h, at[2], j})) : result;
    };
    std::optional<Tracked> sink;
    if (call.has(11))
      sink = Tracked(call.in(11).at({h}));
    else if (is_smooth)
      sink = Tracked(0.0);
    const auto row = attend(
        g.row(0, b, h, at[2]), [&](int64_t j) { return g.cached(1, b, h / shared, j); },
        [&](int64_t j) { return g.cached(2, b, h / shared, j); }, own + 1, score, sink);
    std::copy(row.begin(), row.end(), results.begin() + ((b * g.length + at[2]) * g.heads + h) * g.size);
  });
  References all = {tracked_reference(type, {g.batch, g.length, g.heads * g.size}, results)};
  for (const int64_t which : {1, 2}) {
    std::vector<Tracked> cache;
    for_each_index({g.batch, g.kv_heads, g.capacity}, [&](const Index& at) {
      for (const Tracked& one : g.cached(which, at[0], at[1], at[2])) cache.push_back(one);
    });
    all.push_back(tracked_reference(type, {g.batch, g.kv_heads, g.capacity, g.size}, cache));
  }
  return all;
}

// Returns the value at index `i` of quantized values of `bits` bits that are packed in bytes, from element `first` of
// `bytes` on.
int64_t quantized_at(const Array& bytes, int64_t first, int64_t bits, int64_t i) {
  const int64_t byte = whole(bytes.values[static_cast<size_t>(first + i * bits / 8)]);
  return byte >> i * bits % 8 & ((int64_t{1} << bits) - 1);
}

// A times the transpose of weights: each column has K quantized values in blocks. A value less the zero point of its
// block, times the scale of the block, is a weight.
References matmul_nbits(const Call& call) {
  const Array &a = call.in(0, 1), &quantized = call.in(1), &scales = call.in(2);
  const int64_t k = call.integer("K"), n = call.integer("N"), bits = call.integer("bits", 4),
                block = call.integer("block_size");
  require(is_float(a.dtype) && k > 0 && n > 0 && a.extents.back() == k, "A is not floating-point, or not of K columns");
  require((bits == 2 || bits == 4 || bits == 8) && block >= 16 && (block & (block - 1)) == 0,
          "bits must be 2, 4 or 8, and block_size a power of two from 16");
  const int64_t blocks = (k + block - 1) / block, column_bytes = blocks * block / 8 * bits,
                zero_bytes = (blocks * bits + 7) / 8;
  require(quantized.count() == n * column_bytes && scales.count() == n * blocks, "B or scales do not fit K and N");
  const bool has_zeros = call.has(3), packs_zeros = has_zeros && call.in(3).dtype == BP_DTYPE_UINT8;
  require(!has_zeros || call.in(3).count() == n * (packs_zeros ? zero_bytes : blocks),
          "zero_points do not fit K and N");
  std::vector<int64_t> groups;
  if (call.has(4)) groups = call.integers(4);
  require(groups.empty() || static_cast<int64_t>(groups.size()) >= k, "g_idx has fewer than K elements");
  for (const int64_t group : groups) require(group >= 0 && group < blocks, "g_idx names a block that does not exist");
  std::vector<Tracked> weights;
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = groups.empty() ? i / block : groups[static_cast<size_t>(i)], place = column * blocks + at;
      const Tracked zero(!has_zeros    ? static_cast<double>(int64_t{1} << (bits - 1))
                         : packs_zeros ? static_cast<double>(quantized_at(call.in(3), column * zero_bytes, bits, at))
                                       : call.in(3).values[static_cast<size_t>(place)]);
      const auto value = static_cast<double>(quantized_at(quantized, column * column_bytes, bits, i));
      weights.push_back((Tracked(value) - zero) * Tracked(scales.values[static_cast<size_t>(place)]));
    }
  }
  Extents extents = a.extents;
  extents.back() = n;
  std::vector<Tracked> results;
  for_each_index(extents, [&](const Index& at) {
    TrackedSum sum(a.dtype);
    Index from = at;
    const int64_t column = at.back();
    for (from.back() = 0; from.back() < k; ++from.back())
      sum.add(Tracked(a.at(from)), weights[static_cast<size_t>(column * k + from.back())]);
    results.push_back(call.has(5) ? sum.result() + Tracked(call.vector(5, n)[static_cast<size_t>(column)])
                                  : sum.result());
  });
  return {tracked_reference(a.dtype, extents, results)};
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"EmbedLayerNormalization", {1}, embed_layer_normalization, kMicrosoft},
    {"GroupQueryAttention", {1}, group_query_attention, kMicrosoft},
    {"MatMulNBits", {1}, matmul_nbits, kMicrosoft},
    {"NhwcConv", {1}, nhwc_conv, kMicrosoft},
};

}  // namespace

std::span<const Operator> microsoft_operators() {
  return kOperators;
}

}  // namespace backplane::conform
