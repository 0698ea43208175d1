// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/multi_head.h"

#include "kernels/float16/compute_type.h"

namespace backplane::cpu {

MultiHeadOptions multi_head_options(const Node& node) {
  return {node.attr("num_heads", int64_t{0}), node.attr("scale", 0.0f), node.attr("mask_filter_value", -10000.0f),
          node.attr("unidirectional", int64_t{0}) != 0, node.ints("qkv_hidden_sizes")};
}

Verdict check_multi_head(const Node& node) {
  if (node.find("num_heads") == nullptr) return no(BP_REASON_ATTRIBUTE, "num_heads is missing");
  if (const int64_t heads = node.attr("num_heads", int64_t{0}); heads < 1)
    return no(BP_REASON_ATTRIBUTE, "num_heads is " + std::to_string(heads) + "; it must be positive");
  for (const char* name : {"do_rotary", "past_present_share_buffer"})
    if (node.attr(name, int64_t{0}) != 0) return no(BP_REASON_ATTRIBUTE, std::string(name) + " is not supported");
  const size_t sizes = node.ints("qkv_hidden_sizes").size();
  if (sizes != 0 && sizes != 3)
    return no(BP_REASON_ATTRIBUTE, "qkv_hidden_sizes has " + std::to_string(sizes) + " numbers, not 3");
  return yes();
}

bool KeyMask::fit(const Tensor& mask, const AttentionSize& s) {
  const Shape& m = mask.shape;
  kind_ = kNone;
  if (!mask.present()) return true;
  if (m == Shape{2 * s.batch}) kind_ = kEndsAndStarts;
  if (m == Shape{s.batch} || m == Shape{3 * s.batch + 2}) kind_ = kLengths;
  if (m == Shape{s.batch, s.q_length, s.kv_length}) kind_ = kQueryKeys;
  if (m == Shape{s.batch, s.kv_length}) kind_ = kKeys;
  // A single number for all keys of a sequence changes no softmax, whatever it is.
  return kind_ != kNone || m == Shape{s.batch, 1} || m == Shape{1, 1};
}

void KeyMask::add(const int32_t* mask, const AttentionSize& s, float masked, int64_t b, int64_t i, float* row,
                  int64_t n) const {
  if (kind_ == kNone) return;
  if (kind_ == kLengths || kind_ == kEndsAndStarts) {
    const int64_t end = std::clamp<int64_t>(mask[b], 0, n);
    for (int64_t j = end; j < n; ++j) row[j] += masked;
    if (kind_ == kLengths) return;
    const int64_t start = std::clamp<int64_t>(mask[s.batch + b], 0, n);
    for (int64_t j = 0; j < start; ++j) row[j] = j < end ? row[j] + masked : row[j];
    return;
  }
  const int32_t* keys = mask + (kind_ == kKeys ? b : b * s.q_length + i) * s.kv_length;
  for (int64_t j = 0; j < n; ++j) row[j] += keys[j] > 0 ? 0 : masked;
}

bool MultiHead::fit_bias(const Tensor& bias) {
  if (!bias.present()) return true;
  const Shape& b = bias.shape;
  if (b.rank() != 4 || (b[0] != 1 && b[0] != size.batch) || (b[1] != 1 && b[1] != size.q_heads) ||
      b[2] != size.q_length || b[3] != size.kv_length)
    return false;
  bias_strides = {b[0] == 1 ? 0 : b[1] * b[2] * b[3], b[1] == 1 ? 0 : b[2] * b[3]};
  return true;
}

void MultiHead::run(HeadView<const float> q, HeadView<const float> k, HeadView<const float> v,
                    const Tensor& mask_tensor, const Tensor& bias, const Tensor& result, void* scratch) const {
  std::vector<float> bias_store, y_store;
  const float* added = bias.present() ? as_compute(bias, bias_store) : nullptr;
  const int32_t* keys = mask_tensor.present() ? mask_tensor.as<int32_t>() : nullptr;
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(size.head_size));
  float* y = result_buffer(result, y_store);
  attend<float>(
      size, {scale, 0, options.causal ? 0 : -1, -1, {}, plain}, q, k, v,
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

float* present_or(const Tensor& present, int64_t floats, std::vector<float>& storage) {
  if (present.present()) return result_buffer(present, storage);
  require_memory(floats, sizeof(float));
  storage.resize(static_cast<size_t>(floats));
  return storage.data();
}

}  // namespace backplane::cpu
