// SPDX-License-Identifier: Apache-2.0
// com.microsoft MultiHeadAttention and Attention: attention of packed heads with biases, a key mask and a cache.
// Attention also computes the queries, keys and values from its input, by one matrix product.
#include <array>
#include <cstring>

#include "kernels/attention/attention.h"
#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

constexpr const char* kMicrosoft = "com.microsoft";

struct Options {
  int64_t heads;
  float scale, masked;  // `masked`: added to the scores of masked keys
  bool causal;
  std::vector<int64_t> sizes;  // for Attention: total widths of queries, keys and values; may be empty
};

// An INT32 key mask and its form: [batch] lengths, or [batch, keys] or [batch, queries, keys], where 0 masks a key.
struct KeyMask {
  enum Kind { kNone, kLengths, kKeys, kQueryKeys } kind = kNone;

  bool fit(const Tensor& mask, const AttentionSize& s) {
    if (!mask.present()) return true;
    if (mask.shape == Shape{s.batch}) kind = kLengths;
    if (mask.shape == Shape{s.batch, s.kv_length}) kind = kKeys;
    if (mask.shape == Shape{s.batch, s.q_length, s.kv_length}) kind = kQueryKeys;
    return kind != kNone;
  }
  void add(const int32_t* mask, const AttentionSize& s, float masked, int64_t b, int64_t i, float* row,
           int64_t n) const {
    if (kind == kNone) return;
    if (kind == kLengths) {
      for (int64_t j = std::max<int64_t>(0, mask[b]); j < n; ++j) row[j] += masked;
      return;
    }
    const int32_t* keys = mask + (kind == kKeys ? b : b * s.q_length + i) * s.kv_length;
    for (int64_t j = 0; j < n; ++j) row[j] += keys[j] == 0 ? masked : 0;
  }
};

// The part that both operators share: attention on computed queries, keys and values.
struct MultiHead {
  Options options;
  AttentionSize size{};
  int64_t past = 0;  // number of keys before the new ones
  KeyMask mask;
  std::array<int64_t, 2> bias_strides{};  // strides of attention_bias by batch and head

  // Whether attention_bias has the extents of the scores, or 1 for batch or heads.
  bool fit_bias(const Tensor& bias) {
    if (!bias.present()) return true;
    const Shape& b = bias.shape;
    if (b.rank() != 4 || (b[0] != 1 && b[0] != size.batch) || (b[1] != 1 && b[1] != size.q_heads) ||
        b[2] != size.q_length || b[3] != size.kv_length)
      return false;
    bias_strides = {b[0] == 1 ? 0 : b[1] * b[2] * b[3], b[1] == 1 ? 0 : b[2] * b[3]};
    return true;
  }
  int64_t cached_floats(int64_t width) const { return product({size.batch, size.kv_heads, size.kv_length, width}); }

  void run(HeadView<const float> q, HeadView<const float> k, HeadView<const float> v, const Tensor& mask_tensor,
           const Tensor& bias, const Tensor& result, void* scratch) const {
    std::vector<float> bias_store, y_store;
    const float* added = bias.present() ? as_compute(bias, bias_store) : nullptr;
    const int32_t* keys = mask_tensor.present() ? mask_tensor.as<int32_t>() : nullptr;
    const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(size.head_size));
    float* y = result_buffer(result, y_store);
    attend<float>(
        size, {scale, 0, options.causal, -1, {}}, q, k, v,
        view_heads(y, true, size.q_heads, size.q_length, size.v_size),
        [&](int64_t b, int64_t h, int64_t i, float* row, int64_t n) {
          mask.add(keys, size, options.masked, b, i, row, n);
          if (added == nullptr) return;
          const float* from = added + b * bias_strides[0] + h * bias_strides[1] + i * size.kv_length;
          for (int64_t j = 0; j < n; ++j) row[j] += from[j];
        },
        [&](int64_t) { return past; }, [&](int64_t) { return size.kv_length; }, false,
        [](AttentionStage, int64_t, int64_t, int64_t, const float*) {}, scratch);
    store_result(result, y_store);
  }
};

// Writes the keys or values of all positions as [batch, heads, past + length, width]: the past, then the new rows,
// whose heads are packed.
void join_cache(const float* past, int64_t before, const float* fresh, int64_t fresh_row, const MultiHead& m,
                int64_t width, float* to) {
  const AttentionSize& s = m.size;
  const int64_t length = s.kv_length - before;
  parallel(s.batch * s.kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / s.kv_heads, h = i % s.kv_heads;
      float* head = to + i * s.kv_length * width;
      if (before > 0) std::copy_n(past + i * before * width, before * width, head);
      for (int64_t t = 0; t < length; ++t)
        std::copy_n(fresh + (b * length + t) * fresh_row + h * width, width, head + (before + t) * width);
    }
  });
}

// Returns the rows of a matrix plus a bias, stored in `storage`; if `bias` is null, `rows` itself.
const float* with_bias(const float* rows, int64_t count, int64_t width, const float* bias,
                       std::vector<float>& storage) {
  if (bias == nullptr) return rows;
  require_memory(product({count, width}), sizeof(float));
  storage.resize(static_cast<size_t>(count * width));
  parallel(count, 1 + kCheapGrain / (1 + width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < width; ++j) storage[static_cast<size_t>(r * width + j)] = rows[r * width + j] + bias[j];
  });
  return storage.data();
}

float* present_or(const Tensor& present, int64_t floats, std::vector<float>& storage) {
  if (present.present()) return result_buffer(present, storage);
  require_memory(floats, sizeof(float));
  storage.resize(static_cast<size_t>(floats));
  return storage.data();
}

// ---- MultiHeadAttention

namespace mha {

enum Slot : size_t { kQuery, kKey, kValue, kBias, kMask, kAddend, kPastKey, kPastValue };

void run(const MultiHead& m, bool has_heads, Tensors in, Tensors out, void* scratch) {
  const AttentionSize& s = m.size;
  const int64_t q_width = s.q_heads * s.head_size, v_width = s.q_heads * s.v_size;
  std::vector<float> stores[5], biased[3], caches[2];
  const float* bias = at(in, kBias).present() ? as_compute(in[kBias], stores[0]) : nullptr;
  const float* q = with_bias(as_compute(in[kQuery], stores[1]), s.batch * s.q_length, q_width, bias, biased[0]);
  const float *k = as_compute(in[kKey], stores[2]), *v = as_compute(in[kValue], stores[3]);
  const int64_t fresh = s.kv_length - m.past;
  if (!has_heads && bias != nullptr) {
    k = with_bias(k, s.batch * fresh, q_width, bias + q_width, biased[1]);
    v = with_bias(v, s.batch * fresh, v_width, bias + 2 * q_width, biased[2]);
  }
  bool packed = !has_heads;
  const Tensor present_key = at(out, 1), present_value = at(out, 2);
  if (packed && (m.past > 0 || present_key.present() || present_value.present())) {
    std::vector<float> past_stores[2];
    const float* past_k = m.past > 0 ? as_compute(in[kPastKey], past_stores[0]) : nullptr;
    const float* past_v = m.past > 0 ? as_compute(in[kPastValue], past_stores[1]) : nullptr;
    float* all_k = present_or(present_key, m.cached_floats(s.head_size), caches[0]);
    float* all_v = present_or(present_value, m.cached_floats(s.v_size), caches[1]);
    join_cache(past_k, m.past, k, q_width, m, s.head_size, all_k);
    join_cache(past_v, m.past, v, v_width, m, s.v_size, all_v);
    k = all_k;
    v = all_v;
    packed = false;
  } else if (has_heads) {
    for (size_t i = 0; i < 2; ++i) {
      const Tensor present = at(out, 1 + i);
      if (present.present() && present.dtype == in[kKey + i].dtype)
        std::memcpy(present.data, in[kKey + i].data,
                    static_cast<size_t>(bytes_of(present.dtype, present.shape.elements())));
    }
  }
  m.run(view_heads(q, true, s.q_heads, s.q_length, s.head_size),
        view_heads(k, packed, s.kv_heads, s.kv_length, s.head_size),
        view_heads(v, packed, s.kv_heads, s.kv_length, s.v_size), at(in, kMask), at(in, kAddend), out[0], scratch);
  for (size_t i = 0; i < 2; ++i) {
    if (at(out, 1 + i).present() && !has_heads) store_result(out[1 + i], caches[i]);
  }
}

Plan plan(const PlanContext& context, const Options& o, Tensors in) {
  const Shape &q = in[kQuery].shape, &k = in[kKey].shape, &v = in[kValue].shape;
  const auto mismatch = [&](const char* what) {
    return fail(std::string(what) + " does not fit query " + to_string(q) + ", key " + to_string(k) + " and value " +
                to_string(v) + " of " + std::to_string(o.heads) + " heads");
  };
  const bool has_heads = k.rank() == 4;
  if (q.rank() != 3 || q[2] % o.heads != 0 || (k.rank() != 3 && k.rank() != 4) || v.rank() != k.rank())
    return mismatch("num_heads");
  MultiHead m{o};
  AttentionSize& s = m.size;
  s = {q[0], o.heads, o.heads, q[1], 0, q[2] / o.heads, 0};
  if (has_heads) {
    s.kv_length = k[2];
    s.v_size = v[3];
    if (!(k == Shape{s.batch, s.kv_heads, s.kv_length, s.head_size}) ||
        !(v == Shape{s.batch, s.kv_heads, s.kv_length, s.v_size}))
      return mismatch("key or value");
  } else {
    s.kv_length = k[1];
    s.v_size = v[2] / o.heads;
    if (!(k == Shape{s.batch, s.kv_length, q[2]}) || v[0] != s.batch || v[1] != s.kv_length || v[2] % o.heads != 0)
      return mismatch("key or value");
  }
  if (const Tensor past = at(in, kPastKey); past.present()) {
    if (has_heads || past.shape.rank() != 4) return mismatch("past_key");
    m.past = past.shape[2];
    if (!(past.shape == Shape{s.batch, s.kv_heads, m.past, s.head_size}) ||
        !(in[kPastValue].shape == Shape{s.batch, s.kv_heads, m.past, s.v_size}))
      return mismatch("past_key or past_value");
    s.kv_length += m.past;
  }
  if (at(in, kBias).present() && in[kBias].shape.elements() != 2 * q[2] + s.q_heads * s.v_size) return mismatch("bias");
  if (!m.mask.fit(at(in, kMask), s)) return mismatch("key_padding_mask");
  if (!m.fit_bias(at(in, kAddend))) return mismatch("attention_bias");
  return make_plan(
      {Shape{s.batch, s.q_length, s.q_heads * s.v_size}, Shape{s.batch, s.kv_heads, s.kv_length, s.head_size},
       Shape{s.batch, s.kv_heads, s.kv_length, s.v_size}},
      [m, has_heads](Tensors inputs, Tensors outputs, void* scratch) { run(m, has_heads, inputs, outputs, scratch); },
      {.scratch_bytes = attention_scratch(context.threads, s, sizeof(float))});
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16);
  if (Verdict v = accepts(node, 3, {kReals, kReals, kReals, kReals, just(BP_DTYPE_INT32), kReals, kReals, kReals}); !v)
    return v;
  for (uint32_t slot : {1u, 2u})
    if (Verdict v = same_type(node, 0, slot); !v) return v;
  if (node.has_input(kPastKey) != node.has_input(kPastValue))
    return no(BP_REASON_OPSET, "past_key and past_value must both be present or both absent");
  if (node.attr("num_heads", int64_t{0}) < 1) return no(BP_REASON_ATTRIBUTE, "num_heads is missing or not positive");
  if (node.has_output(3)) return no(BP_REASON_ATTRIBUTE, "scores as an output are not supported");
  return yes();
}

}  // namespace mha

// ---- Attention

namespace combined {

enum Slot : size_t { kInput, kWeights, kBias, kMask, kPast, kAddend };

struct Combined {
  MultiHead heads;
  int64_t inputs, width;  // elements per row of the input, and per row of its product with the weights
  std::array<int64_t, 3> sizes;
};

void run(const Combined& c, Tensors in, Tensors out, void* scratch) {
  const MultiHead& m = c.heads;
  const AttentionSize& s = m.size;
  const int64_t rows = s.batch * s.q_length;
  std::vector<float> stores[4], caches;
  const float *x = as_compute(in[kInput], stores[0]), *weights = as_compute(in[kWeights], stores[1]);
  const float* bias = at(in, kBias).present() ? as_compute(in[kBias], stores[2]) : nullptr;
  auto* all = reinterpret_cast<float*>(scratch);  // the queries, keys and values of each input row
  for (int64_t r = 0; r < rows && bias != nullptr; ++r) std::copy_n(bias, c.width, all + r * c.width);
  sgemm(rows, c.width, c.inputs, 1, {x, c.inputs}, {weights, c.width}, bias != nullptr ? 1.0f : 0.0f, all, c.width);
  const float *k = all + c.sizes[0], *v = k + c.sizes[1];
  const auto view = [&](const float* data, int64_t size) {
    return HeadView<const float>{data, s.q_length * c.width, size, c.width};
  };
  HeadView<const float> keys = view(k, s.head_size), values = view(v, s.v_size);
  if (const Tensor present = at(out, 1); m.past > 0 || present.present()) {
    const float* past = m.past > 0 ? as_compute(in[kPast], stores[3]) : nullptr;
    const int64_t half = m.cached_floats(s.head_size);
    float* cache = present_or(present, 2 * half, caches);
    const float* past_values = past == nullptr ? nullptr : past + s.batch * s.kv_heads * m.past * s.head_size;
    join_cache(past, m.past, k, c.width, m, s.head_size, cache);
    join_cache(past_values, m.past, v, c.width, m, s.v_size, cache + half);
    keys = view_heads<const float>(cache, false, s.kv_heads, s.kv_length, s.head_size);
    values = view_heads<const float>(cache + half, false, s.kv_heads, s.kv_length, s.v_size);
    if (present.present()) store_result(present, caches);
  }
  void* rest = static_cast<std::byte*>(scratch) + align_up(rows * c.width * int64_t{sizeof(float)});
  m.run(view(all, s.head_size), keys, values, at(in, kMask), at(in, kAddend), out[0], rest);
}

Plan plan(const PlanContext& context, const Options& o, Tensors in) {
  const Shape &x = in[kInput].shape, &w = in[kWeights].shape;
  const auto mismatch = [&](const char* what) {
    return fail(std::string(what) + " does not fit input " + to_string(x) + " and weights " + to_string(w) + " of " +
                std::to_string(o.heads) + " heads");
  };
  if (x.rank() != 3 || w.rank() != 2 || w[0] != x[2]) return mismatch("weights");
  Combined c{MultiHead{o}, x[2], w[1], {}};
  for (size_t i = 0; i < 3; ++i) c.sizes[i] = o.sizes.empty() ? w[1] / 3 : o.sizes[i];
  if (c.sizes[0] + c.sizes[1] + c.sizes[2] != w[1] || c.sizes[0] != c.sizes[1] || c.sizes[0] % o.heads != 0 ||
      c.sizes[2] % o.heads != 0)
    return mismatch("num_heads or qkv_hidden_sizes");
  MultiHead& m = c.heads;
  AttentionSize& s = m.size;
  s = {x[0], o.heads, o.heads, x[1], x[1], c.sizes[0] / o.heads, c.sizes[2] / o.heads};
  if (at(in, kBias).present() && in[kBias].shape.elements() != w[1]) return mismatch("bias");
  if (const Tensor past = at(in, kPast); past.present()) {
    if (past.shape.rank() != 5 || s.head_size != s.v_size) return mismatch("past");
    m.past = past.shape[3];
    if (!(past.shape == Shape{2, s.batch, s.kv_heads, m.past, s.head_size})) return mismatch("past");
    s.kv_length += m.past;
  }
  if (!m.mask.fit(at(in, kMask), s)) return mismatch("mask_index");
  if (!m.fit_bias(at(in, kAddend))) return mismatch("attention_bias");
  const int64_t floats = product({s.batch, s.q_length, c.width});
  return make_plan({Shape{s.batch, s.q_length, c.sizes[2]}, Shape{2, s.batch, s.kv_heads, s.kv_length, s.head_size}},
                   [c](Tensors inputs, Tensors outputs, void* scratch) { run(c, inputs, outputs, scratch); },
                   {.scratch_bytes = align_up(floats * int64_t{sizeof(float)}) +
                                     attention_scratch(context.threads, s, sizeof(float))});
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16);
  if (Verdict v = accepts(node, 2, {kReals, kReals, kReals, just(BP_DTYPE_INT32), kReals, kReals}); !v) return v;
  if (Verdict v = same_type(node, kInput, kWeights); !v) return v;
  if (node.attr("num_heads", int64_t{0}) < 1) return no(BP_REASON_ATTRIBUTE, "num_heads is missing or not positive");
  for (const char* name : {"do_rotary", "past_present_share_buffer"})
    if (node.attr(name, int64_t{0}) != 0) return no(BP_REASON_ATTRIBUTE, std::string(name) + " is not supported");
  const std::vector<int64_t> sizes = node.ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3)
    return no(BP_REASON_ATTRIBUTE, "qkv_hidden_sizes has " + std::to_string(sizes.size()) + " numbers, not 3");
  if (node.has_output(1) && !sizes.empty() && sizes[0] != sizes[2])
    return no(BP_REASON_ATTRIBUTE, "keys and values must have equal sizes to share the output present");
  return yes();
}

}  // namespace combined

template <Plan (*kPlan)(const PlanContext&, const Options&, Tensors)>
std::unique_ptr<Kernel> create(const Node& node) {
  const Options o{node.attr("num_heads", int64_t{0}), node.attr("scale", 0.0f),
                  node.attr("mask_filter_value", -10000.0f), node.attr("unidirectional", int64_t{0}) != 0,
                  node.ints("qkv_hidden_sizes")};
  return make_kernel([o](const PlanContext& context, Tensors inputs) { return kPlan(context, o, inputs); });
}

constexpr Row kRows[] = {
    {kMicrosoft, "Attention", 1, combined::supports, create<combined::plan>},
    {kMicrosoft, "MultiHeadAttention", 1, mha::supports, create<mha::plan>},
};

}  // namespace

[[gnu::cold]] std::span<const Row> multi_head_attention_rows() {
  return kRows;
}

}  // namespace backplane::cpu
