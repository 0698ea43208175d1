// SPDX-License-Identifier: Apache-2.0
// com.microsoft MultiHeadAttention and Attention: attention of packed heads with biases, a key mask and a cache.
// Attention also computes the queries, keys and values from its input, by one matrix product.
#include <cstring>

#include "kernels/attention/combined_attention.h"
#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"
#include "runtime/memory.h"

namespace backplane::cpu {

namespace {

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

Plan plan(const PlanContext& context, const MultiHeadOptions& o, Tensors in) {
  const Shape &q = in[kQuery].shape, &k = in[kKey].shape, &v = in[kValue].shape;
  const auto mismatch = [&](const char* what) {
    return fail(std::string(what) + " does not fit query " + to_string(q) + ", key " + to_string(k) + " and value " +
                to_string(v) + " of " + std::to_string(o.heads) + " heads");
  };
  const bool has_heads = k.rank() == 4;
  if (q.rank() != 3 || q[2] % o.heads != 0 || (k.rank() != 3 && k.rank() != 4) || v.rank() != k.rank())
    return mismatch("num_heads");
  MultiHead m{o};
  m.plain = context.reference;
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
  if (Verdict v = check_multi_head(node); !v) return v;
  if (node.has_output(3)) return no(BP_REASON_ATTRIBUTE, "output 3, the scores, is not supported");
  return yes();
}

}  // namespace mha

// ---- Attention

namespace combined {

enum Slot : size_t { kInput, kWeights, kBias, kMask, kPast, kAddend };

CombinedInputs inputs_of(Tensors in) {
  return {at(in, kBias), at(in, kMask), at(in, kPast), at(in, kAddend)};
}

void run(const CombinedAttention& c, Tensors in, Tensors out, void* scratch) {
  const int64_t rows = c.rows();
  std::vector<float> stores[3];
  const float *x = as_compute(in[kInput], stores[0]), *weights = as_compute(in[kWeights], stores[1]);
  const float* bias = at(in, kBias).present() ? as_compute(in[kBias], stores[2]) : nullptr;
  auto* all = reinterpret_cast<float*>(scratch);  // the queries, keys and values of each input row
  for (int64_t r = 0; r < rows && bias != nullptr; ++r) std::copy_n(bias, c.width, all + r * c.width);
  sgemm(rows, c.width, c.inputs, 1, {x, c.inputs}, {weights, c.width}, bias != nullptr ? 1.0f : 0.0f, all, c.width);
  void* rest = static_cast<std::byte*>(scratch) + align_up(rows * c.width * int64_t{sizeof(float)});
  c.run(all, inputs_of(in), out[0], at(out, 1), rest);
}

Plan plan(const PlanContext& context, const MultiHeadOptions& o, Tensors in) {
  std::string error;
  auto fitted = fit_combined(o, in[kInput].shape, in[kWeights].shape, inputs_of(in), error);
  if (!fitted) return fail(error);
  fitted->heads.plain = context.reference;
  const int64_t floats = product({fitted->rows(), fitted->width});
  return make_plan(fitted->shapes(),
                   [c = *fitted](Tensors inputs, Tensors outputs, void* scratch) { run(c, inputs, outputs, scratch); },
                   {.scratch_bytes = align_up(floats * int64_t{sizeof(float)}) +
                                     attention_scratch(context.threads, fitted->heads.size, sizeof(float))});
}

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16);
  if (Verdict v = accepts(node, 2, {kReals, kReals, kReals, just(BP_DTYPE_INT32), kReals, kReals}); !v) return v;
  if (Verdict v = same_type(node, kInput, kWeights); !v) return v;
  if (Verdict v = check_multi_head(node); !v) return v;
  const std::vector<int64_t> sizes = node.ints("qkv_hidden_sizes");
  if (node.has_output(1) && !sizes.empty() && sizes[0] != sizes[2])
    return no(BP_REASON_ATTRIBUTE, "qkv_hidden_sizes has " + std::to_string(sizes[0]) + " for queries and " +
                                       std::to_string(sizes[2]) +
                                       " for values; they must be equal if the output present is used");
  return yes();
}

}  // namespace combined

template <Plan (*kPlan)(const PlanContext&, const MultiHeadOptions&, Tensors)>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel(
      [o = multi_head_options(node)](const PlanContext& context, Tensors inputs) { return kPlan(context, o, inputs); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> multi_head_attention_rows() {
  static constexpr Row kRows[] = {
      {kMicrosoft, "Attention", 1, combined::supports, create<combined::plan>},
      {kMicrosoft, "MultiHeadAttention", 1, mha::supports, create<mha::plan>},
  };
  return kRows;
}

}  // namespace backplane::cpu
