// SPDX-License-Identifier: Apache-2.0
// LinearAttention, which keeps a state of fixed size instead of a growing cache of keys and values, and
// CausalConvWithState.
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/float16/compute_type.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

// ---- LinearAttention

enum Slot : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

struct LinearAttention {
  int64_t q_heads, kv_heads;
  float scale;
  int64_t batch = 0, length = 0, key_size = 0, value_size = 0;
  int64_t decays = 0, betas = 0;  // numbers per position: 0 if the input is absent
};

// Computes key head `h` of batch `b`, position by position. Updates `state` [key_size, value_size]. `in` points to the
// node's inputs in fp32, by slot.
void follow(const LinearAttention& a, int64_t b, int64_t h, const float* const* in, float* state, float* output) {
  const int64_t dk = a.key_size, dv = a.value_size, group = a.q_heads / a.kv_heads;
  std::vector<float> write(static_cast<size_t>(dv));
  Pace pace;
  for (int64_t t = 0; t < a.length; ++t) {
    pace.spend(4 * dk * dv + dv);
    const int64_t row = b * a.length + t;
    const float* key = in[kKey] + (row * a.kv_heads + h) * dk;
    const float* value = in[kValue] + (row * a.kv_heads + h) * dv;
    if (a.decays != 0) {
      const bool by_head = a.decays == a.kv_heads;
      const float* decay = in[kDecay] + row * a.decays + (by_head ? h : h * dk);
      for (int64_t d = 0; d < dk; ++d) {
        const float factor = std::exp(decay[by_head ? 0 : d]);
        for (int64_t m = 0; m < dv; ++m) state[d * dv + m] *= factor;
      }
    }
    std::copy_n(value, dv, write.begin());
    if (a.betas != 0) {
      const float beta = in[kBeta][row * a.betas + (a.betas == 1 ? 0 : h)];
      for (int64_t m = 0; m < dv; ++m) {
        float retrieved = 0;
        for (int64_t d = 0; d < dk; ++d) retrieved += state[d * dv + m] * key[d];
        write[static_cast<size_t>(m)] = beta * (value[m] - retrieved);
      }
    }
    for (int64_t d = 0; d < dk; ++d)
      for (int64_t m = 0; m < dv; ++m) state[d * dv + m] += key[d] * write[static_cast<size_t>(m)];
    for (int64_t g = 0; g < group; ++g) {
      const int64_t head = row * a.q_heads + h * group + g;
      const float* query = in[kQuery] + head * dk;
      float* y = output + head * dv;
      for (int64_t m = 0; m < dv; ++m) {
        float sum = 0;
        for (int64_t d = 0; d < dk; ++d) sum += query[d] * state[d * dv + m];
        y[m] = a.scale * sum;
      }
    }
  }
}

void run_linear(const LinearAttention& a, Tensors in, Tensors out) {
  std::vector<float> storage[6], y_store, state_store;
  const float* data[6] = {};
  for (size_t slot = 0; slot < 6; ++slot)
    if (at(in, slot).present()) data[slot] = as_compute(in[slot], storage[slot]);
  const int64_t size = a.key_size * a.value_size;
  std::vector<float> own_state;
  Tensor present = at(out, 1);
  float* state;
  if (present.present()) {
    state = result_buffer(present, state_store);
  } else {
    require_memory(product({a.batch, a.kv_heads, size}), sizeof(float));
    own_state.resize(static_cast<size_t>(a.batch * a.kv_heads * size));
    state = own_state.data();
  }
  std::vector<float> own_output;
  float* y;
  if (out[0].present()) {
    y = result_buffer(out[0], y_store);
  } else {
    require_memory(product({a.batch, a.length, a.q_heads, a.value_size}), sizeof(float));
    own_output.resize(static_cast<size_t>(a.batch * a.length * a.q_heads * a.value_size));
    y = own_output.data();
  }
  parallel(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (data[kPast] != nullptr)
        std::copy_n(data[kPast] + i * size, size, state + i * size);
      else
        std::fill_n(state + i * size, size, 0.0f);
      follow(a, i / a.kv_heads, i % a.kv_heads, data, state + i * size, y);
    }
  });
  if (out[0].present()) store_result(out[0], y_store);
  if (present.present()) store_result(present, state_store);
}

Plan plan_linear(LinearAttention a, Tensors in) {
  const Shape &q = in[kQuery].shape, &k = in[kKey].shape, &v = in[kValue].shape;
  const Tensor past = at(in, kPast), decay = at(in, kDecay), beta = at(in, kBeta);
  bool fits = q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q[0] == k[0] && q[0] == v[0] && q[1] == k[1] &&
              q[1] == v[1] && q[2] % a.q_heads == 0 && k[2] % a.kv_heads == 0 && v[2] % a.kv_heads == 0 &&
              q[2] / a.q_heads == k[2] / a.kv_heads;
  if (fits) {
    a.batch = q[0];
    a.length = q[1];
    a.key_size = k[2] / a.kv_heads;
    a.value_size = v[2] / a.kv_heads;
    const auto per_position = [&](const Tensor& t, int64_t one, int64_t other) -> int64_t {
      if (!t.present()) return 0;
      fits = fits && t.shape.rank() == 3 && t.shape[0] == a.batch && t.shape[1] == a.length &&
             (t.shape[2] == one || t.shape[2] == other);
      return fits ? t.shape[2] : 0;
    };
    a.decays = per_position(decay, a.kv_heads, a.kv_heads * a.key_size);
    a.betas = per_position(beta, a.kv_heads, 1);
  }
  const Shape state{a.batch, a.kv_heads, a.key_size, a.value_size};
  if (!fits || (past.present() && !(past.shape == state)))
    return fail("query " + to_string(q) + ", key " + to_string(k) + ", value " + to_string(v) +
                " and the other inputs do not fit q_num_heads " + std::to_string(a.q_heads) + " and kv_num_heads " +
                std::to_string(a.kv_heads));
  if (a.scale == 0) a.scale = 1 / std::sqrt(static_cast<float>(a.key_size));
  return make_plan({Shape{a.batch, a.length, a.q_heads * a.value_size}, state},
                   [a](Tensors inputs, Tensors outputs) { run_linear(a, inputs, outputs); });
}

constexpr bp_dtype_set_t kSingle = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16) | just(BP_DTYPE_BFLOAT16);

Verdict supports_linear(const Node& node) {
  if (Verdict v = accepts(node, 3, {kSingle, kSingle, kSingle, kSingle, kSingle, kSingle}); !v) return v;
  if (Verdict v = attribute_in(node, "update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"}); !v)
    return v;
  const std::string rule = node.attr("update_rule", "gated_delta");
  if (node.has_input(kDecay) != rule.starts_with("gated"))
    return no(
        BP_REASON_ATTRIBUTE,
        "update_rule '" + rule + "' does not fit the inputs; decay must be given for 'gated' and 'gated_delta' only");
  if (node.has_input(kBeta) != rule.ends_with("delta"))
    return no(
        BP_REASON_ATTRIBUTE,
        "update_rule '" + rule + "' does not fit the inputs; beta must be given for 'delta' and 'gated_delta' only");
  const int64_t q = node.attr("q_num_heads", int64_t{0}), kv = node.attr("kv_num_heads", int64_t{0});
  if (q < 1 || kv < 1 || q % kv != 0)
    return no(BP_REASON_ATTRIBUTE, "q_num_heads must be a positive multiple of kv_num_heads, but they are " +
                                       std::to_string(q) + " and " + std::to_string(kv));
  return yes();
}

std::unique_ptr<Kernel> create_linear(const Node& node) {
  const LinearAttention a{node.attr("q_num_heads", int64_t{1}), node.attr("kv_num_heads", int64_t{1}),
                          node.attr("scale", 0.0f)};
  return make_kernel([a](Tensors inputs) { return plan_linear(a, inputs); });
}

// ---- CausalConvWithState: convolves each channel, preceded by its past inputs. The last inputs are the state for the
// next run.

template <class T>
void run_causal(bool silu, int64_t width, Tensors in, Tensors out) {
  using C = compute_t<T>;
  const int64_t channels = in[0].shape[1], length = in[0].shape[2], kept = width - 1;
  const T *x = in[0].as<T>(), *weights = in[1].as<T>();
  const T *bias = at(in, 2).as<T>(), *past = at(in, 3).as<T>();
  T *y = out[0].as<T>(), *state = at(out, 1).as<T>();
  parallel(in[0].shape[0] * channels, 1 + kCheapGrain / (1 + length * width), [&](int64_t begin, int64_t end) {
    Pace pace;
    for (int64_t i = begin; i < end; ++i) {
      const auto sample = [&](int64_t t) -> T {  // t = 0 is the first element of the past
        if (t >= kept) return x[i * length + t - kept];
        return past == nullptr ? T(0) : past[i * kept + t];
      };
      for (int64_t t = 0; y != nullptr && t < length; ++t) {
        pace.spend(width);
        C sum = bias == nullptr ? C(0) : static_cast<C>(bias[i % channels]);
        for (int64_t k = 0; k < width; ++k)
          sum += static_cast<C>(sample(t + k)) * static_cast<C>(weights[i % channels * width + k]);
        if (silu) {
          const C rounded = static_cast<C>(static_cast<T>(sum));
          sum = rounded / (1 + std::exp(-rounded));
        }
        y[i * length + t] = static_cast<T>(sum);
      }
      for (int64_t t = 0; state != nullptr && t < kept; ++t) state[i * kept + t] = sample(length + t);
    }
  });
}

Verdict supports_causal(const Node& node) {
  if (Verdict v = accepts(node, 2, {kSingle, kSingle, kSingle, kSingle}); !v) return v;
  for (uint32_t slot = 1; slot < 4; ++slot)
    if (node.has_input(slot))
      if (Verdict v = same_type(node, 0, slot); !v) return v;
  return attribute_in(node, "activation", "none", {"none", "silu", "swish"});
}

std::unique_ptr<Kernel> create_causal(const Node& node) {
  return make_kernel([silu = node.attr("activation", "none") != "none"](Tensors in) -> Plan {
    const Shape &x = in[0].shape, &w = in[1].shape;
    const Tensor bias = at(in, 2), past = at(in, 3);
    if (x.rank() != 3 || w.rank() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
      return fail("input " + to_string(x) + " and weights " + to_string(w) + " do not fit each other");
    const Shape state{x[0], x[1], w[2] - 1};
    if (bias.present() && bias.shape.elements() != x[1])
      return fail("bias " + to_string(bias.shape) + " does not fit the channels of input " + to_string(x));
    if (past.present() && !(past.shape == state))
      return fail("past_state has shape " + to_string(past.shape) + "; it must have " + to_string(state));
    return make_plan({x, state}, [silu, width = w[2]](Tensors inputs, Tensors outputs) {
      dispatch<TypeList<float, Half, BFloat16>>(
          inputs[0].dtype, [&](auto tag) { run_causal<typename decltype(tag)::type>(silu, width, inputs, outputs); });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> linear_attention_rows() {
  static constexpr Row kRows[] = {
      Row{"", "LinearAttention", 27, supports_linear, create_linear}.with(kOmitsOutput0),
      Row{"", "CausalConvWithState", 27, supports_causal, create_causal}.with(kOmitsOutput0),
  };
  return kRows;
}

}  // namespace backplane::cpu
