// SPDX-License-Identifier: Apache-2.0
// ONNX Attention, with packed or separate heads, masks and a cache of past keys and values.
#include "kernels/attention/attention.h"

#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };

struct AttentionAttributes {
  int64_t q_heads, kv_heads;
  std::optional<float> scale;
  float softcap;
  int64_t ahead, window;  // as in AttentionRules
  int64_t observed;       // attribute qk_matmul_output_mode
};

// Strides, in elements, of a mask by batch, head and query; 0 where it is broadcast. The mask may have fewer keys than
// K has: the others are masked.
struct MaskView {
  std::array<int64_t, 3> strides{};
  int64_t keys = 0;

  bool fit(const Shape& mask, const AttentionSize& s) {
    if (mask.rank() < 1 || mask.rank() > 4) return false;
    const std::array<int64_t, 3> extents{s.batch, s.q_heads, s.q_length};
    keys = mask[mask.rank() - 1];
    if (keys > s.kv_length) return false;
    int64_t stride = keys;
    for (int d = mask.rank() - 2; d >= 0; --d) {
      const size_t axis = static_cast<size_t>(d + 4 - mask.rank());
      if (mask[d] != 1 && mask[d] != extents[axis]) return false;
      strides[axis] = mask[d] == 1 ? 0 : stride;
      stride *= mask[d];
    }
    return true;
  }
};

template <class C>
void add_mask(const MaskView& view, const Tensor& mask, int64_t offset, C* row, int64_t n) {
  constexpr C kNever = -std::numeric_limits<C>::infinity();
  dispatch<NumbersAndBool>(mask.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = mask.as<T>() + offset;
    for (int64_t j = 0; j < std::min(n, view.keys); ++j) {
      if constexpr (std::is_same_v<T, Bool>)
        row[j] = values[j] ? row[j] : kNever;
      else
        row[j] += static_cast<C>(values[j]);
    }
  });
  for (int64_t j = view.keys; j < n; ++j) row[j] = kNever;
}

// Copies the past positions, then the new ones, into `present` [batch, heads, past + length, size].
void join_cache(const Tensor& past, const Tensor& fresh, bool packed, const Tensor& present) {
  const int64_t heads = present.shape[1], total = present.shape[2];
  const int64_t before = past.present() ? past.shape[2] : 0, length = total - before;
  const int64_t row = bytes_of(present.dtype, present.shape[3]);
  auto* to = present.as<std::byte>();
  parallel(present.shape[0] * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (before * row > 0)
        std::memcpy(to + i * total * row, past.as<std::byte>() + i * before * row, static_cast<size_t>(before * row));
      const int64_t b = i / heads, h = i % heads;
      for (int64_t s = 0; s < length && row > 0; ++s) {
        const int64_t from = packed ? (b * length + s) * heads + h : i * length + s;
        std::memcpy(to + (i * total + before + s) * row, fresh.as<std::byte>() + from * row, static_cast<size_t>(row));
      }
    }
  });
}

struct Sized {
  AttentionSize size{};
  int64_t past = 0;
  bool packed = false;
  bool plain = false;  // reference mode: compute as the operator is defined
  MaskView mask;
};

template <class C>
void run_attention(const AttentionAttributes& a, const Sized& sized, Tensors in, Tensors out, void* scratch) {
  const AttentionSize& s = sized.size;
  // All keys and values, past and new: stored in the node's outputs if it has them, else in these blocks. If there are
  // neither outputs nor past positions, the inputs are read directly.
  std::vector<std::byte> key_block, value_block;
  const auto joined = [&](size_t slot, size_t past_slot, size_t out_slot, int64_t width,
                          std::vector<std::byte>& block) {
    Tensor present{in[slot].dtype, Shape{s.batch, s.kv_heads, s.kv_length, width}, at(out, out_slot).data};
    if (present.data == nullptr) {
      if (!at(in, past_slot).present()) return std::pair(in[slot], sized.packed);
      require_memory(present.shape.elements(), bytes_of(present.dtype, 1));
      block.resize(static_cast<size_t>(bytes_of(present.dtype, present.shape.elements())));
      present.data = block.data();
    }
    join_cache(at(in, past_slot), in[slot], sized.packed, present);
    return std::pair(present, false);
  };
  const auto [key, key_packed] = joined(kK, kPastKey, 1, s.head_size, key_block);
  const auto [value, value_packed] = joined(kV, kPastValue, 2, s.v_size, value_block);

  std::vector<C> q_store, k_store, v_store, y_store;
  const auto q = view_heads(as_compute(in[kQ], q_store), sized.packed, s.q_heads, s.q_length, s.head_size);
  const auto k = view_heads(as_compute(key, k_store), key_packed, s.kv_heads, s.kv_length, s.head_size);
  const auto v = view_heads(as_compute(value, v_store), value_packed, s.kv_heads, s.kv_length, s.v_size);
  const auto y = view_heads(result_buffer(out[0], y_store), sized.packed, s.q_heads, s.q_length, s.v_size);

  const AttentionRules rules{a.scale ? *a.scale : 1 / std::sqrt(static_cast<double>(s.head_size)),
                             a.softcap,
                             a.ahead,
                             a.window,
                             {},
                             sized.plain};
  const Tensor mask = at(in, kMask), lengths = at(in, kLengths), observed = at(out, 3);
  // With nonpad_kv_seqlen, K and V hold past positions too, and the queries are the last ones.
  const auto length = [&](int64_t b) {
    if (!lengths.present()) return s.kv_length;
    const int64_t given = __atomic_load_n(lengths.as<int64_t>() + b, __ATOMIC_RELAXED);  // it may change: see index.h
    return std::clamp<int64_t>(given, 0, s.kv_length);
  };
  attend<C>(
      s, rules, q, k, v, y,
      [&](int64_t b, int64_t h, int64_t i, C* row, int64_t n) {
        if (!mask.present()) return;
        const auto& stride = sized.mask.strides;
        add_mask(sized.mask, mask, b * stride[0] + h * stride[1] + i * stride[2], row, n);
      },
      [&](int64_t b) { return lengths.present() ? length(b) - s.q_length : sized.past; }, length, observed.present(),
      [&](AttentionStage stage, int64_t b, int64_t h, int64_t i, const C* row) {
        if (static_cast<int64_t>(stage) != a.observed) return;
        const int64_t offset = ((b * s.q_heads + h) * s.q_length + i) * s.kv_length;
        dispatch<Floats>(observed.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          for (int64_t j = 0; j < s.kv_length; ++j)
            observed.as<T>()[offset + j] = static_cast<T>(static_cast<compute_t<T>>(row[j]));
        });
      },
      scratch);
  store_result(out[0], y_store);
}

// The extents of Q, K or V, whether its heads are packed or separate.
struct Heads {
  int64_t batch, heads, length, size;
};
std::optional<Heads> heads_of(const Shape& shape, int64_t heads) {
  if (shape.rank() == 4) return Heads{shape[0], shape[1], shape[2], shape[3]};
  if (shape.rank() != 3 || heads < 1 || shape[2] % heads != 0) return std::nullopt;
  return Heads{shape[0], heads, shape[1], shape[2] / heads};
}

Plan plan_attention(const PlanContext& context, const AttentionAttributes& a, Tensors in) {
  const auto q = heads_of(in[kQ].shape, a.q_heads), k = heads_of(in[kK].shape, a.kv_heads),
             v = heads_of(in[kV].shape, a.kv_heads);
  const Tensor past_key = at(in, kPastKey), past_value = at(in, kPastValue), mask = at(in, kMask);
  const auto operands = [&] {
    return "Q " + to_string(in[kQ].shape) + ", K " + to_string(in[kK].shape) + " and V " + to_string(in[kV].shape);
  };
  const auto bad_past = [&] {
    return fail("past_key " + to_string(past_key.shape) + " and past_value " + to_string(past_value.shape) +
                " do not fit " + operands());
  };
  if (!q || !k || !v || in[kQ].shape.rank() != in[kK].shape.rank() || in[kQ].shape.rank() != in[kV].shape.rank() ||
      q->batch != k->batch || q->batch != v->batch || k->heads != v->heads || k->heads < 1 ||
      q->heads % k->heads != 0 || q->size != k->size || k->length != v->length)
    return fail(operands() + " do not fit each other; q_num_heads is " + std::to_string(a.q_heads) +
                " and kv_num_heads " + std::to_string(a.kv_heads));
  Sized sized;
  sized.plain = context.reference;
  AttentionSize& s = sized.size;
  s = {q->batch, q->heads, k->heads, q->length, k->length, q->size, v->size};
  sized.packed = in[kQ].shape.rank() == 3;
  if (past_key.present()) {
    if (past_key.shape.rank() != 4) return bad_past();
    sized.past = past_key.shape[2];
    if (!(past_key.shape == Shape{s.batch, s.kv_heads, sized.past, s.head_size}) ||
        !(past_value.shape == Shape{s.batch, s.kv_heads, sized.past, s.v_size}))
      return bad_past();
    s.kv_length += sized.past;
  }
  if (mask.present() && !sized.mask.fit(mask.shape, s))
    return fail("attn_mask " + to_string(mask.shape) + " does not fit scores " +
                to_string(Shape{s.batch, s.q_heads, s.q_length, s.kv_length}));
  if (at(in, kLengths).present() && !(in[kLengths].shape == Shape{s.batch}))
    return fail("nonpad_kv_seqlen " + to_string(in[kLengths].shape) + " does not have one number per sequence");
  const Shape result =
      sized.packed ? Shape{s.batch, s.q_length, s.q_heads * s.v_size} : Shape{s.batch, s.q_heads, s.q_length, s.v_size};
  const bool doubles = in[kQ].dtype == BP_DTYPE_DOUBLE || in[kV].dtype == BP_DTYPE_DOUBLE;
  const int64_t scratch_bytes = attention_scratch(context.threads, s, doubles ? sizeof(double) : sizeof(float));
  return make_plan(
      {result, Shape{s.batch, s.kv_heads, s.kv_length, s.head_size}, Shape{s.batch, s.kv_heads, s.kv_length, s.v_size},
       Shape{s.batch, s.q_heads, s.q_length, s.kv_length}},
      [a, sized, doubles](Tensors inputs, Tensors outputs, void* scratch) {
        (doubles ? run_attention<double> : run_attention<float>)(a, sized, inputs, outputs, scratch);
      },
      {.scratch_bytes = scratch_bytes});
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 3,
                          {kFloatTypes, kFloatTypes, kFloatTypes, set_of(NumbersAndBool{}), kFloatTypes, kFloatTypes,
                           just(BP_DTYPE_INT64)});
      !v)
    return v;
  if (node.has_input(kPastKey) != node.has_input(kPastValue))
    return no(BP_REASON_ATTRIBUTE, "past_key and past_value must both be present or both absent");
  if (Verdict v = same_type(node, kQ, kK); !v) return v;
  if (node.has_input(kPastKey)) {
    if (Verdict v = same_type(node, kK, kPastKey); !v) return v;
    if (Verdict v = same_type(node, kV, kPastValue); !v) return v;
  }
  const int64_t mode = node.attr("qk_matmul_output_mode", int64_t{0});
  if (mode < 0 || mode > 3)
    return no(BP_REASON_ATTRIBUTE, "qk_matmul_output_mode is " + std::to_string(mode) + "; it must be 0 to 3");
  for (const char* side : {"left_window_size", "right_window_size"}) {
    if (const int64_t size = node.attr(side, int64_t{-1}); size < -1)
      return no(BP_REASON_ATTRIBUTE, std::string(side) + " is " + std::to_string(size) + "; it must be at least -1");
  }
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  constexpr int64_t kFar = int64_t{1} << 40;  // beyond every position
  const bool causal = node.attr("is_causal", int64_t{0}) != 0;
  const int64_t left = std::min(node.attr("left_window_size", int64_t{-1}), kFar);
  const int64_t right = std::min(node.attr("right_window_size", int64_t{-1}), kFar);
  AttentionAttributes a{node.attr("q_num_heads", int64_t{0}),
                        node.attr("kv_num_heads", int64_t{0}),
                        std::nullopt,
                        node.attr("softcap", 0.0f),
                        causal ? 0 : right,
                        left < 0 ? -1 : left + 1,
                        node.attr("qk_matmul_output_mode", int64_t{0})};
  if (node.find("scale") != nullptr) a.scale = node.attr("scale", 1.0f);
  return make_kernel([a](const PlanContext& context, Tensors inputs) { return plan_attention(context, a, inputs); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> attention_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Attention", 23, supports, create}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
