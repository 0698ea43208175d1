// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/combined_attention.h"

#include "kernels/float16/compute_type.h"

namespace backplane::cpu {

std::vector<Shape> CombinedAttention::shapes() const {
  const AttentionSize& s = heads.size;
  return {Shape{s.batch, s.q_length, sizes[2]}, Shape{2, s.batch, s.kv_heads, s.kv_length, s.head_size}};
}

void CombinedAttention::run(const float* rows, const CombinedInputs& in, const Tensor& y, const Tensor& present,
                            void* scratch) const {
  const MultiHead& m = heads;
  const AttentionSize& s = m.size;
  std::vector<float> past_store, caches;
  const float *k = rows + sizes[0], *v = k + sizes[1];
  const auto view = [&](const float* data, int64_t size) {
    return HeadView<const float>{data, s.q_length * width, size, width};
  };
  HeadView<const float> keys = view(k, s.head_size), values = view(v, s.v_size);
  if (m.past > 0 || present.present()) {
    const float* past = m.past > 0 ? as_compute(in.past, past_store) : nullptr;
    const int64_t half = m.cached_floats(s.head_size);
    float* cache = present_or(present, 2 * half, caches);
    const float* past_values = past == nullptr ? nullptr : past + s.batch * s.kv_heads * m.past * s.head_size;
    join_cache(past, m.past, k, width, m, s.head_size, cache);
    join_cache(past_values, m.past, v, width, m, s.v_size, cache + half);
    keys = view_heads<const float>(cache, false, s.kv_heads, s.kv_length, s.head_size);
    values = view_heads<const float>(cache + half, false, s.kv_heads, s.kv_length, s.v_size);
    if (present.present()) store_result(present, caches);
  }
  m.run(view(rows, s.head_size), keys, values, in.mask, in.added, y, scratch);
}

std::optional<CombinedAttention> fit_combined(const MultiHeadOptions& o, const Shape& x, const Shape& w,
                                              const CombinedInputs& in, std::string& error) {
  const auto mismatch = [&](const char* what) {
    error = std::string(what) + " does not fit input " + to_string(x) + " and weights " + to_string(w) + " of " +
            std::to_string(o.heads) + " heads";
    return std::nullopt;
  };
  if (x.rank() != 3 || w.rank() != 2 || w[0] != x[2]) return mismatch("the shape of the weights");
  CombinedAttention c{MultiHead{o}, x[2], w[1], {}};
  for (size_t i = 0; i < 3; ++i) c.sizes[i] = o.sizes.empty() ? w[1] / 3 : o.sizes[i];
  // Each size is checked first, because the sum of the sizes could wrap.
  if (std::ranges::min(c.sizes) < 0 || std::ranges::max(c.sizes) > w[1] ||
      c.sizes[0] + c.sizes[1] + c.sizes[2] != w[1] || c.sizes[0] != c.sizes[1] || c.sizes[0] % o.heads != 0 ||
      c.sizes[2] % o.heads != 0)
    return mismatch("num_heads or qkv_hidden_sizes");
  MultiHead& m = c.heads;
  AttentionSize& s = m.size;
  s = {x[0], o.heads, o.heads, x[1], x[1], c.sizes[0] / o.heads, c.sizes[2] / o.heads};
  if (in.bias.present() && in.bias.shape.elements() != w[1]) return mismatch("bias");
  if (in.past.present()) {
    const Shape& past = in.past.shape;
    if (past.rank() != 5 || s.head_size != s.v_size) return mismatch("past");
    m.past = past[3];
    if (!(past == Shape{2, s.batch, s.kv_heads, m.past, s.head_size})) return mismatch("past");
    s.kv_length += m.past;
  }
  if (!m.mask.fit(in.mask, s)) return mismatch("mask_index");
  if (!m.fit_bias(in.added)) return mismatch("attention_bias");
  return c;
}

}  // namespace backplane::cpu
