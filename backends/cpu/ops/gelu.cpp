// SPDX-License-Identifier: Apache-2.0
// com.microsoft's forms of GELU: exact, with a bias, by tanh, by a sigmoid.
#include <cmath>
#include <numbers>

#include "ops/function_kernel.h"
#include "ops/rows.h"
#include "ops/support.h"

namespace backplane::cpu {

namespace {

struct Exact {
  explicit Exact(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return x / 2 * (1 + std::erf(x / static_cast<C>(std::numbers::sqrt2)));
  }
};

struct ByTanh {
  explicit ByTanh(const Node&) {}
  template <class C>
  C operator()(C x) const {
    const C factor = static_cast<C>(0.7978845608028654);  // the root of 2 / pi
    return x / 2 * (1 + std::tanh(factor * (x + static_cast<C>(0.044715) * x * x * x)));
  }
};

struct BySigmoid {
  explicit BySigmoid(const Node& node) : alpha(node.attr("alpha", 1.702f)) {}
  template <class C>
  C operator()(C x) const {
    return x / (1 + std::exp(-static_cast<C>(alpha) * x));
  }
  float alpha;
};

Verdict supports(const Node& node) {
  const bool biased = node.op_type() == "BiasGelu";
  if (Verdict v = accepts(node, biased ? 2 : 1, {kFloatTypes, kFloatTypes}); !v) return v;
  return node.has_input(1) ? same_type(node, 0, 1) : yes();
}

template <class Formula>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([formula = Formula(node)](Tensors in) -> Plan {
    const Shape& x = in[0].shape;
    const Tensor bias = at(in, 1);
    const int64_t width = x.rank() == 0 ? 1 : x[x.rank() - 1];
    if (bias.present() && bias.shape.elements() != width)
      return fail("bias " + to_string(bias.shape) + " does not fit " + to_string(x));
    return make_plan({x},
                     [formula, width](Tensors inputs, Tensors outputs) {
                       dispatch<Floats>(inputs[0].dtype, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         using C = compute_t<T>;
                         const T *from = inputs[0].as<T>(), *shift = at(inputs, 1).as<T>();
                         T* to = outputs[0].as<T>();
                         parallel(inputs[0].shape.elements(), kMathGrain, [&](int64_t begin, int64_t end) {
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

constexpr const char* kMicrosoft = "com.microsoft";
constexpr Row kRows[] = {
    {kMicrosoft, "Gelu", 1, supports, create<Exact>},
    {kMicrosoft, "BiasGelu", 1, supports, create<Exact>},
    {kMicrosoft, "FastGelu", 1, supports, create<ByTanh>},
    {kMicrosoft, "QuickGelu", 1, supports, create<BySigmoid>},
};

}  // namespace

std::span<const Row> gelu_rows() {
  return kRows;
}

}  // namespace backplane::cpu
