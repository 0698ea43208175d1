// SPDX-License-Identifier: Apache-2.0
// com.microsoft's variants of GELU: exact, with a bias, and approximated by tanh or sigmoid.
#include <cmath>
#include <numbers>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

CLONED void add_row(const float* x, const float* shift, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + shift[i];
}
CLONED void quick_gelu_row(const float* x, float* y, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * sigmoid_formula(alpha * x[i]);
}

// The formulas. Each has `row`, a vectorized form for rows of floats.
struct Exact {
  explicit Exact(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return x / 2 * (1 + std::erf(x / static_cast<C>(std::numbers::sqrt2)));
  }
  void row(const float* x, float* y, int64_t n) const { gelu_row(x, y, n); }
};

struct ByTanh {
  explicit ByTanh(const Node&) {}
  template <class C>
  C operator()(C x) const {
    const C factor = static_cast<C>(0.7978845608028654);  // sqrt(2 / pi)
    return x / 2 * (1 + std::tanh(factor * (x + static_cast<C>(0.044715) * x * x * x)));
  }
  void row(const float* x, float* y, int64_t n) const { gelu_tanh_row(x, y, n); }
};

struct BySigmoid {
  explicit BySigmoid(const Node& node) : alpha(node.attr("alpha", 1.702f)) {}
  template <class C>
  C operator()(C x) const {
    return x / (1 + std::exp(-static_cast<C>(alpha) * x));
  }
  void row(const float* x, float* y, int64_t n) const { clone_of<quick_gelu_row>(x, y, n, alpha); }
  float alpha;
};

Verdict supports(const Node& node) {
  const bool biased = node.op_type() == "BiasGelu";
  if (Verdict v = accepts(node, biased ? 2 : 1, {kFloatTypes, kFloatTypes}); !v) return v;
  return node.has_input(1) ? same_type(node, 0, 1) : yes();
}

// Computes elements [begin, end) of rows of `width` elements. `bias` has `width` elements, or is null.
template <class Formula>
void run_floats(const Formula& formula, const float* x, const float* bias, int64_t width, float* y, int64_t begin,
                int64_t end) {
  if (bias == nullptr) return formula.row(x + begin, y + begin, end - begin);
  while (begin < end) {
    const int64_t n = std::min(end - begin, width - begin % width);
    clone_of<add_row>(x + begin, bias + begin % width, y + begin, n);
    formula.row(y + begin, y + begin, n);
    begin += n;
  }
}

template <class Formula>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([formula = Formula(node)](const PlanContext& context, Tensors in) -> Plan {
    const Shape& x = in[0].shape;
    const Tensor bias = at(in, 1);
    const int64_t width = x.rank() == 0 ? 1 : x[x.rank() - 1];
    if (bias.present() && bias.shape.elements() != width)
      return fail("bias " + to_string(bias.shape) + " must have " + std::to_string(width) + " elements");
    return make_plan({x},
                     [formula, width, plain = context.reference](Tensors inputs, Tensors outputs) {
                       dispatch<Floats>(inputs[0].dtype, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         using C = compute_t<T>;
                         const T *from = inputs[0].as<T>(), *shift = at(inputs, 1).as<T>();
                         T* to = outputs[0].as<T>();
                         parallel(inputs[0].shape.elements(), kMathGrain, [&](int64_t begin, int64_t end) {
                           if constexpr (std::is_same_v<T, float>) {
                             if (!plain) return run_floats(formula, from, shift, width, to, begin, end);
                           }
                           for (int64_t i = begin; i < end; ++i) {
                             C value = static_cast<C>(from[i]);
                             if (shift != nullptr) value += static_cast<C>(shift[i % width]);
                             to[i] = static_cast<T>(formula(value));
                           }
                         });
                       });
                     },
                     {.inplace = 0});
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> gelu_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "Gelu", 1, supports, create<Exact>}.in_fp32(),
      Row{kMicrosoft, "BiasGelu", 1, supports, create<Exact>}.in_fp32(),
      Row{kMicrosoft, "FastGelu", 1, supports, create<ByTanh>}.in_fp32(),
      Row{kMicrosoft, "QuickGelu", 1, supports, create<BySigmoid>}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
