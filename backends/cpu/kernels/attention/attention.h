// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention, shared by Attention, GroupQueryAttention and the operators that use multi_head.h.
// Processes tiles of up to kAttentionTile queries of one head: a matrix product, the softmax, and a second product.
// FlexAttention uses only the products and the softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/float16_array.h"
#include "kernels/common/support.h"
#include "kernels/onednn/onednn.h"
#include "kernels/simd/vector_math.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

// A strided view of heads: position `s` of head `h` of batch `b` begins at data[b * batch + h * head + s * row].
template <class C>
struct HeadView {
  C* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
  C* at(int64_t b, int64_t h, int64_t s = 0) const { return data + b * batch + h * head + s * row; }
};

// Returns the view of `data` in one of two layouts: [batch, heads, length, size], or packed [batch, length, heads *
// size].
template <class C>
HeadView<C> view_heads(C* data, bool packed, int64_t heads, int64_t length, int64_t size) {
  if (packed) return {data, heads * length * size, size, heads * size};
  return {data, heads * length * size, length * size, size};
}

struct AttentionSize {
  int64_t batch, q_heads, kv_heads, q_length, kv_length, head_size, v_size;
};

struct AttentionRules {
  double scale = 1;
  double softcap = 0;  // 0: no cap
  // The position p of query i of batch b is past(b) + i; see attend(). Of the keys after p, the query sees only the
  // first `ahead` (0: attention is causal), and of the keys up to p only the last `window`; -1: all of them.
  int64_t ahead = -1, window = -1;
  std::vector<float> sinks;  // by query head: an additional score in the softmax, without a row of V; may be empty
  bool plain = false;        // reference mode: compute as the operator is defined
};

// The stages at which rows of scores are passed to `observe`.
enum class AttentionStage { kProduct, kCapped, kBiased, kSoftmax };

// Computes C = alpha · A · B. The matrices are row-major, their strides in elements; B is stored transposed if
// `b_transposed`.
inline void attention_product(int64_t m, int64_t n, int64_t k, double alpha, const float* a, int64_t a_stride,
                              const float* b, int64_t b_stride, bool b_transposed, float* c, int64_t c_stride) {
  sgemm(m, n, k, static_cast<float>(alpha), {a, a_stride}, {b, b_stride, b_transposed}, 0, c, c_stride);
}
inline void attention_product(int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t a_stride,
                              const double* b, int64_t b_stride, bool b_transposed, double* c, int64_t c_stride) {
  Pace pace;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      pace.spend(k);
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a[i * a_stride + l] * (b_transposed ? b[j * b_stride + l] : b[l * b_stride + j]);
      c[i * c_stride + j] = alpha * sum;
    }
  }
}

// Computes the softmax of a row of `n` scores in place. `sink`: an additional score, or -infinity for none. Without a
// sink, a row whose scores are all masked becomes NaN, as FlexAttention needs it; `attend` handles such rows itself.
// `plain`: compute as the operator is defined, for reference mode.
template <class C>
void attention_softmax(C* row, int64_t n, C sink, bool plain = true) {
  if constexpr (std::is_same_v<C, float>) {
    if (!plain && std::isinf(sink)) return softmax_row(row, row, n);
  }
  C largest = sink;
  for (int64_t j = 0; j < n; ++j) largest = std::max(largest, row[j]);
  double sum = std::isinf(sink) ? 0 : std::exp(sink - largest);
  for (int64_t j = 0; j < n; ++j) sum += row[j] = std::exp(row[j] - largest);
  const C factor = static_cast<C>(1 / sum);
  for (int64_t j = 0; j < n; ++j) row[j] *= factor;
}

// The maximum number of a head's queries whose scores a thread holds in memory at once.
inline constexpr int64_t kAttentionTile = 64;

// The size of the scratch memory for `attend` in bytes: `attention_part` for one thread, `attention_scratch` for all. A
// score takes `score_bytes`.
inline int64_t attention_part(const AttentionSize& s, int64_t score_bytes) {
  return align_up(product({std::min(kAttentionTile, s.q_length), s.kv_length, score_bytes}));
}
inline int64_t attention_scratch(int threads, const AttentionSize& s, int64_t score_bytes) {
  return threads * attention_part(s, score_bytes);
}

// Computes attention. `bias(b, h, i, row, n)` may change the `n` scores of query i. `past(b)` returns the number of
// keys in batch b before the position of the first query, `length(b)` the number of keys that batch b has. If
// `observes`, calls `observe(stage, b, h, i, row)` with complete rows of kv_length scores. The result of a query that
// sees no key is 0.
template <class C, class Bias, class Past, class Length, class Observe>
void attend(const AttentionSize& s, const AttentionRules& rules, HeadView<const C> q, HeadView<const C> k,
            HeadView<const C> v, HeadView<C> y, const Bias& bias, const Past& past, const Length& length, bool observes,
            const Observe& observe, void* scratch) {
  constexpr int64_t kTile = kAttentionTile;
  constexpr C kNever = -std::numeric_limits<C>::infinity();
  const int64_t tiles = (s.q_length + kTile - 1) / kTile;
  const int64_t group = s.q_heads / s.kv_heads;
  parallel(s.batch * s.q_heads * tiles, 1, [&](int64_t begin, int64_t end) {
    Pace pace;
    auto* scores =
        reinterpret_cast<C*>(static_cast<std::byte*>(scratch) + thread_index() * attention_part(s, sizeof(C)));
    for (int64_t job = begin; job < end; ++job) {
      const int64_t b = job / tiles / s.q_heads, h = job / tiles % s.q_heads, first = job % tiles * kTile;
      const int64_t rows = std::min(kTile, s.q_length - first);
      const int64_t seen = std::clamp<int64_t>(length(b), 0, s.kv_length), before = past(b);
      int64_t n = s.kv_length;  // number of keys that at least one query of the tile sees
      if (!observes) n = rules.ahead >= 0 ? std::clamp<int64_t>(before + first + rows + rules.ahead, 0, seen) : seen;
      if (n == 0) {
        for (int64_t i = 0; i < rows; ++i) std::fill_n(y.at(b, h, first + i), s.v_size, C{0});
        continue;
      }
      pace.spend(rows * n * (s.head_size + s.v_size + 8));
      attention_product(rows, n, s.head_size, rules.scale, q.at(b, h, first), q.row, k.at(b, h / group), k.row, true,
                        scores, n);
      for (int64_t i = 0; i < rows; ++i) {
        C* row = scores + i * n;
        const auto show = [&](AttentionStage stage) {
          if (observes) observe(stage, b, h, first + i, row);
        };
        show(AttentionStage::kProduct);
        if (rules.softcap != 0) {
          const C cap = static_cast<C>(rules.softcap);
          for (int64_t j = 0; j < n; ++j) row[j] = std::tanh(row[j] / cap) * cap;
        }
        show(AttentionStage::kCapped);
        bias(b, h, first + i, row, n);
        for (int64_t j = std::min(seen, n); j < n; ++j) row[j] = kNever;
        const int64_t own = before + first + i;  // the position of this query
        if (rules.ahead >= 0)
          for (int64_t j = std::clamp<int64_t>(own + 1 + rules.ahead, 0, n); j < n; ++j) row[j] = kNever;
        if (rules.window >= 0) std::fill_n(row, std::clamp<int64_t>(own + 1 - rules.window, 0, n), kNever);
        show(AttentionStage::kBiased);
        if (rules.sinks.empty() && std::all_of(row, row + n, [&](C score) { return score == kNever; })) {
          std::fill_n(row, n, C{0});
          show(AttentionStage::kSoftmax);
          continue;
        }
        attention_softmax(row, n, rules.sinks.empty() ? kNever : static_cast<C>(rules.sinks[static_cast<size_t>(h)]),
                          rules.plain);
        show(AttentionStage::kSoftmax);
      }
      attention_product(rows, s.v_size, n, 1, scores, n, v.at(b, h / group), v.row, false, y.at(b, h, first), y.row);
    }
  });
}

}  // namespace backplane::cpu
