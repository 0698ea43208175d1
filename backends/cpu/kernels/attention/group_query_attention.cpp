// SPDX-License-Identifier: Apache-2.0
// com.microsoft GroupQueryAttention: causal attention that can rotate queries and keys itself, with a cache in which
// each sequence of the batch has its own length.
#include <array>
#include <cstring>

#include "kernels/attention/attention.h"
#include "kernels/attention/rotary.h"
#include "kernels/common/float16_array.h"
#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosine,
  kSine,
  kPositions,
  kBias,
  kSink
};

struct Options {
  int64_t heads, kv_heads;
  float scale, softcap;
  int64_t window;
  bool rotates, interleaved, smooth;
};

struct GroupQuery {
  Options options;
  AttentionSize size{};
  int64_t past_capacity = 0;  // number of positions in past_key and past_value
  int64_t rotary_dim = 0, rotary_cached = 0;
  bool packed = false;                    // the query input also contains keys and values
  bool plain = false;                     // reference mode: compute as the operator is defined
  std::array<int64_t, 2> bias_strides{};  // strides of attention_bias by batch and head
  int64_t bias_keys = 0;

  int64_t head_at(int64_t b, int64_t s, int64_t h, int64_t heads, int64_t row_heads) const {
    return ((b * size.q_length + s) * row_heads + h % heads) * size.head_size;
  }
  int64_t query_floats() const { return product({size.batch, size.q_heads, size.q_length, size.head_size}); }
  int64_t cache_floats() const { return product({size.batch, size.kv_heads, size.kv_length, size.head_size}); }
};

// The keys or values of all positions of all heads. Offsets are in elements.
struct Cache {
  Tensor past, present;  // the node's input and output; either may be absent
  float* floats;         // the keys or values as attention reads them; in the memory of `present` if it is FLOAT

  bool is_in_place() const {
    const auto* const memory = past.present() ? past.as<const std::byte>() : nullptr;
    return memory != nullptr && present.present() && memory == present.as<const std::byte>();
  }
  // Starts the head at offset `at`: copies `count` elements from `past`, beginning at offset `kept`. If both caches are
  // the same memory, their elements have the same offsets, and stay there.
  void begin(int64_t at, int64_t kept, int64_t count) const {
    if (!past.present()) return;
    const auto copy = [&](const auto* from, auto* to) {
      if (from != to) std::copy_n(from, count, to);
    };
    if (past.dtype == BP_DTYPE_FLOAT)
      copy(past.as<const float>() + kept, floats + at);
    else
      widen(past.dtype, past.as<uint16_t>() + kept, floats + at, count);
    if (has_16_bit_floats() && past.dtype == present.dtype)
      copy(past.as<const uint16_t>() + kept, present.as<uint16_t>() + at);
  }
  // Finishes the head at offset `at`, whose elements [first, last) are new: zeroes the rest up to `capacity`, and
  // converts the floats to `present` if `present` has 16-bit floats.
  void end(int64_t at, int64_t first, int64_t last, int64_t capacity) const {
    std::fill(floats + at + last, floats + at + capacity, 0.0f);
    if (!has_16_bit_floats()) return;
    const int64_t from = past.present() && past.dtype == present.dtype ? first : 0;
    narrow(present.dtype, floats + at + from, present.as<uint16_t>() + at + from, capacity - from);
  }

 private:
  bool has_16_bit_floats() const { return present.present() && present.dtype != BP_DTYPE_FLOAT; }
};

std::optional<std::string> run(const GroupQuery& g, Tensors in, Tensors out, void* scratch) {
  const AttentionSize& s = g.size;
  const Options& o = g.options;
  const int64_t d = s.head_size, row_heads = g.packed ? s.q_heads + 2 * s.kv_heads : 0;
  const int32_t* lengths = in[kLengths].as<int32_t>();
  std::vector<float> q_store, k_store, v_store, cosine_store, sine_store, y_store, bias_store;
  const float* query = as_compute(in[kQuery], q_store);
  const float* key = g.packed ? query + s.q_heads * d : as_compute(in[kKey], k_store);
  const float* value = g.packed ? query + (s.q_heads + s.kv_heads) * d : as_compute(in[kValue], v_store);
  const float* cosine = o.rotates ? as_compute(in[kCosine], cosine_store) : nullptr;
  const float* sine = o.rotates ? as_compute(in[kSine], sine_store) : nullptr;

  // The position of each sequence's first new token. In a first prompt, it is 0 for all sequences, whatever their
  // lengths.
  const int64_t total = scalar(in[kTotal]) > 0 ? static_cast<int64_t>(scalar(in[kTotal])) : 0;
  const bool prompt = s.q_length == total;
  std::vector<int64_t> begins(static_cast<size_t>(s.batch));
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t length = int64_t{lengths[b]} + 1, begin = prompt ? 0 : length - s.q_length;
    if (length < 0 || begin < 0 || begin + s.q_length > s.kv_length || begin > g.past_capacity)
      return "seqlens_k holds " + std::to_string(lengths[b]) + ", which does not fit " + std::to_string(s.q_length) +
             " new tokens; the number of positions in the cache is " + std::to_string(g.past_capacity);
    if (o.rotates && g.rotary_cached < begin + s.q_length && !at(in, kPositions).present())
      return "cos_cache has " + std::to_string(g.rotary_cached) + " positions, but position " +
             std::to_string(begin + s.q_length - 1) + " is used";
    begins[static_cast<size_t>(b)] = begin;
  }
  const int64_t* positions = at(in, kPositions).as<int64_t>();
  for (int64_t i = 0; o.rotates && positions != nullptr && i < s.batch * s.q_length; ++i)
    if (positions[i] < 0 || positions[i] >= g.rotary_cached)
      return "position " + std::to_string(positions[i]) + " is not within the " + std::to_string(g.rotary_cached) +
             " positions of cos_cache";

  // In scratch memory: the rotated queries and, where the outputs cannot be used, the caches of keys (rotated) and
  // values, all as [batch, heads, positions, size].
  auto* memory = static_cast<std::byte*>(scratch);
  const auto floats = [&](int64_t count) {
    auto* block = reinterpret_cast<float*>(memory);
    memory += align_up(count * int64_t{sizeof(float)});
    return block;
  };
  float* queries = floats(g.query_floats());
  std::array<Cache, 2> caches;
  for (size_t i = 0; i < caches.size(); ++i) {
    Cache& c = caches[i] = {at(in, kPastKey + i), at(out, 1 + i), nullptr};
    if (c.is_in_place() && g.past_capacity != s.kv_length)
      return "a cache of " + std::to_string(g.past_capacity) + " positions cannot grow to " +
             std::to_string(s.kv_length) + " in place";
    const bool holds_floats = c.present.present() && c.present.dtype == BP_DTYPE_FLOAT;
    c.floats = holds_floats ? c.present.as<float>() : floats(g.cache_floats());
  }
  const auto turn = [&](const float* x, float* y, int64_t b, int64_t t) {
    if (!o.rotates) {
      std::copy_n(x, d, y);
      return;
    }
    const int64_t position = positions != nullptr ? positions[b * s.q_length + t] : begins[static_cast<size_t>(b)] + t;
    const int64_t row = position * (g.rotary_dim / 2);
    rotate_head<float>(x, y, d, g.rotary_dim, o.interleaved, cosine + row, sine + row);
  };
  parallel(s.batch * s.q_heads, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t b = i / s.q_heads, h = i % s.q_heads, begin = begins[static_cast<size_t>(b)];
      for (int64_t t = 0; t < s.q_length; ++t)
        turn(query + g.head_at(b, t, h, s.q_heads, g.packed ? row_heads : s.q_heads),
             queries + (i * s.q_length + t) * d, b, t);
      if (h >= s.kv_heads) continue;
      const int64_t cache = (b * s.kv_heads + h) * s.kv_length * d;
      const int64_t kept = (b * s.kv_heads + h) * g.past_capacity * d;
      for (const Cache& c : caches) c.begin(cache, kept, begin * d);
      for (int64_t t = 0; t < s.q_length; ++t) {
        const int64_t from = g.head_at(b, t, h, s.kv_heads, g.packed ? row_heads : s.kv_heads);
        const int64_t to = cache + (begin + t) * d;
        turn(key + from, caches[0].floats + to, b, t);
        std::copy_n(value + from, d, caches[1].floats + to);
      }
      for (const Cache& c : caches) c.end(cache, begin * d, (begin + s.q_length) * d, s.kv_length * d);
    }
  });

  AttentionRules rules{
      o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(d)), o.softcap, 0, o.window, {}, g.plain};
  if (at(in, kSink).present()) {
    std::vector<float> storage;
    const float* sinks = as_compute(in[kSink], storage);
    rules.sinks.assign(sinks, sinks + s.q_heads);
  } else if (o.smooth) {
    rules.sinks.assign(static_cast<size_t>(s.q_heads), 0.0f);
  }
  const Tensor bias = at(in, kBias);
  const float* added = bias.present() ? as_compute(bias, bias_store) : nullptr;
  float* y = result_buffer(out[0], y_store);
  attend<float>(
      s, rules, view_heads<const float>(queries, false, s.q_heads, s.q_length, d),
      view_heads<const float>(caches[0].floats, false, s.kv_heads, s.kv_length, d),
      view_heads<const float>(caches[1].floats, false, s.kv_heads, s.kv_length, d),
      view_heads(y, true, s.q_heads, s.q_length, d),
      [&](int64_t b, int64_t h, int64_t i, float* row, int64_t n) {
        if (added == nullptr) return;
        const float* from = added + b * g.bias_strides[0] + h * g.bias_strides[1] + i * g.bias_keys;
        for (int64_t j = 0; j < std::min(n, g.bias_keys); ++j) row[j] += from[j];
      },
      [&](int64_t b) { return begins[static_cast<size_t>(b)]; }, [&](int64_t) { return s.kv_length; }, false,
      [](AttentionStage, int64_t, int64_t, int64_t, const float*) {}, memory);
  store_result(out[0], y_store);
  return std::nullopt;
}

Plan plan(const PlanContext& context, const Options& o, Tensors in) {
  if (!known(in[kTotal])) return deferred();
  GroupQuery g;
  g.options = o;
  g.packed = !at(in, kKey).present();
  g.plain = context.reference;
  const Shape& q = in[kQuery].shape;
  const Tensor past_key = at(in, kPastKey), past_value = at(in, kPastValue), bias = at(in, kBias);
  const int64_t row_heads = g.packed ? o.heads + 2 * o.kv_heads : o.heads;
  const auto mismatch = [&](const char* what) {
    return fail(std::string(what) + " does not fit query " + to_string(q) + " of " + std::to_string(o.heads) +
                " query heads and " + std::to_string(o.kv_heads) + " key heads");
  };
  if (q.rank() != 3 || q[2] % row_heads != 0) return mismatch("num_heads");
  AttentionSize& s = g.size;
  s = {q[0], o.heads, o.kv_heads, q[1], 0, q[2] / row_heads, q[2] / row_heads};
  const Shape fresh{s.batch, s.q_length, s.kv_heads * s.head_size};
  if (!g.packed && (!(in[kKey].shape == fresh) || !(in[kValue].shape == fresh))) return mismatch("key or value");
  if (past_key.present()) {
    g.past_capacity = past_key.shape.rank() == 4 ? past_key.shape[2] : 0;
    if (!(past_key.shape == Shape{s.batch, s.kv_heads, g.past_capacity, s.head_size}) ||
        !(past_value.shape == past_key.shape))
      return mismatch("past_key or past_value");
  }
  if (in[kLengths].shape.elements() != s.batch || in[kTotal].shape.elements() != 1)
    return mismatch("seqlens_k or total_sequence_length");
  const double total = scalar(in[kTotal]);
  if (total < 0 || total > INT32_MAX) return mismatch("total_sequence_length");
  s.kv_length = std::max(g.past_capacity, static_cast<int64_t>(total));
  if (o.rotates) {
    const Shape& cosine = in[kCosine].shape;
    if (cosine.rank() != 2 || !(cosine == in[kSine].shape) || 2 * cosine[1] > s.head_size)
      return mismatch("cos_cache or sin_cache");
    g.rotary_dim = 2 * cosine[1];
    g.rotary_cached = cosine[0];
  }
  if (at(in, kPositions).present() && in[kPositions].shape.elements() != s.batch * s.q_length)
    return mismatch("position_ids");
  if (bias.present()) {
    const Shape& b = bias.shape;
    if (b.rank() != 4 || (b[0] != 1 && b[0] != s.batch) || (b[1] != 1 && b[1] != s.q_heads) || b[2] != s.q_length ||
        b[3] < static_cast<int64_t>(total))
      return mismatch("attention_bias");
    g.bias_keys = b[3];
    g.bias_strides = {b[0] == 1 ? 0 : b[1] * b[2] * b[3], b[1] == 1 ? 0 : b[2] * b[3]};
  }
  if (at(in, kSink).present() && in[kSink].shape.elements() != s.q_heads) return mismatch("head_sink");
  const Shape present{s.batch, s.kv_heads, s.kv_length, s.head_size};
  if (!countable(present)) return mismatch("total_sequence_length");
  return make_plan({Shape{s.batch, s.q_length, s.q_heads * s.head_size}, present, present},
                   [g](Tensors inputs, Tensors outputs, void* scratch) { return run(g, inputs, outputs, scratch); },
                   {.scratch_bytes = align_up(g.query_floats() * int64_t{sizeof(float)}) +
                                     2 * align_up(g.cache_floats() * int64_t{sizeof(float)}) +
                                     attention_scratch(context.threads, s, sizeof(float))});
}

Options options_of(const Node& node) {
  return {node.attr("num_heads", int64_t{0}),
          node.attr("kv_num_heads", int64_t{0}),
          node.attr("scale", 0.0f),
          node.attr("softcap", 0.0f),
          node.attr("local_window_size", int64_t{-1}),
          node.attr("do_rotary", int64_t{0}) != 0,
          node.attr("rotary_interleaved", int64_t{0}) != 0,
          node.attr("smooth_softmax", int64_t{0}) == 1};
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16) | just(BP_DTYPE_BFLOAT16);
  constexpr bp_dtype_set_t kNumber = just(BP_DTYPE_INT32);
  if (Verdict v = accepts(node, 1,
                          {kReals, kReals, kReals, kReals, kReals, kNumber, kNumber, kReals, kReals,
                           just(BP_DTYPE_INT64), kReals, kReals});
      !v)
    return v;
  const Options o = options_of(node);
  if (o.heads < 1 || o.kv_heads < 1 || o.heads % o.kv_heads != 0)
    return no(BP_REASON_ATTRIBUTE, "num_heads must be a positive multiple of kv_num_heads, but they are " +
                                       std::to_string(o.heads) + " and " + std::to_string(o.kv_heads));
  if (!node.has_input(kLengths)) return no(BP_REASON_OPSET, "seqlens_k is missing");
  if (!node.has_input(kTotal)) return no(BP_REASON_OPSET, "total_sequence_length is missing");
  if (node.has_input(kKey) != node.has_input(kValue) || node.has_input(kPastKey) != node.has_input(kPastValue) ||
      (o.rotates && (!node.has_input(kCosine) || !node.has_input(kSine))))
    return no(
        BP_REASON_OPSET,
        "key and value, past_key and past_value, and, with do_rotary, cos_cache and sin_cache must be given together");
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (node.attr(name, "NONE") != "NONE")
      return no(BP_REASON_ATTRIBUTE, std::string(name) + " requires a quantized cache, which is not supported");
  if (node.attr("qk_output", int64_t{0}) != 0 || node.has_output(3))
    return no(BP_REASON_ATTRIBUTE, "the scores as an output (output 3, qk_output) are not supported");
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel(
      [o = options_of(node)](const PlanContext& context, Tensors inputs) { return plan(context, o, inputs); });
}

constexpr Update kCaches[] = {{kPastKey, 1, false}, {kPastValue, 2, false}};

}  // namespace

[[gnu::cold]] std::span<const Row> group_query_attention_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "GroupQueryAttention", 1, supports, create}.updating(kCaches),
  };
  return kRows;
}

}  // namespace backplane::cpu
