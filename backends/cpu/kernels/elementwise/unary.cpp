// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with one input. Each formula is a table row.
#include <array>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/integer_of.h"
#include "kernels/common/small_types.h"
#include "kernels/common/support.h"
#include "kernels/elementwise/formula.h"
#include "kernels/post_op/activation.h"
#include "kernels/simd/lanes.h"
#include "kernels/simd/vector_math.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {
namespace {

// The loop of an operator over a row of elements.
struct Loop {
  void (*row)(const AnyFormula& formula, const void* x, void* y, int64_t n);
  AnyFormula formula;
  int64_t size_x, size_y;  // bytes per element
  bool gives_floats;
};

template <class T, class R, class Formula>
[[gnu::always_inline]] inline void compute_elements(const AnyFormula& any, const void* from, void* to, int64_t n) {
  const Formula formula = any.as<Formula>();
  const T* x = static_cast<const T*>(from);
  R* y = static_cast<R*>(to);
#pragma GCC ivdep  // iterations are independent, even in place
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(formula(static_cast<compute_t<T>>(x[i])));
}

template <class T, class R, class Formula>
void compute_row(const AnyFormula& any, const void* from, void* to, int64_t n) {
  compute_elements<T, R, Formula>(any, from, to, n);
}
template <class Formula>
FOR_AVX2 void compute_floats_avx2(const AnyFormula& any, const void* from, void* to, int64_t n) {
  compute_elements<float, float, Formula>(any, from, to, n);
}

template <class T, class R, class Formula>
decltype(Loop::row) row_of() {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<R, float>) {
    if (processor().has(Instructions::kAvx2)) return compute_floats_avx2<Formula>;
  }
  return compute_row<T, R, Formula>;
}

Plan plan_unary(Tensors inputs, const Loop& loop) {
  const Shape shape = inputs[0].shape;
  const int64_t n = loop.gives_floats ? inputs[0].stored() : shape.elements();
  Plan plan = make_plan({shape},
                        [loop, n](Tensors in, Tensors out) {
                          parallel(n, kMathGrain, [&](int64_t begin, int64_t end) {
                            loop.row(loop.formula, in[0].as<std::byte>() + begin * loop.size_x,
                                     out[0].as<std::byte>() + begin * loop.size_y, end - begin);
                          });
                          if (out[0].format == Format::kBlocked) clear_padding(out[0]);
                        },
                        {.inplace = loop.size_x == loop.size_y ? 0 : -1});
  if (loop.gives_floats) keep_format(plan, inputs);
  return plan;
}

// A formula is a lambda without captures, or a class whose constructor reads the node's attributes.
template <class Formula, class Types, class Result>
std::unique_ptr<Kernel> create_unary(const Node& node, Formula formula) {
  const Loop loop = dispatch<Types>(node.input_type(0).dtype, [&](auto tag) -> Loop {
    using T = typename decltype(tag)::type;
    using R = std::conditional_t<std::is_void_v<Result>, T, Result>;
    return {row_of<T, R, Formula>(), AnyFormula(formula), sizeof(T), sizeof(R), std::is_same_v<R, float>};
  });
  return make_kernel([loop](Tensors inputs) -> Plan { return plan_unary(inputs, loop); });
}

template <class Types>
Verdict accepts_one(const Node& node) {
  return accepts(node, 1, {set_of(Types{})});
}

template <auto kFormula, class Types = Floats, class Result = void>
constexpr Row unary(std::string_view op_type, uint32_t since_version) {
  return Row{"", op_type, since_version, accepts_one<Types>,
             [](const Node& node) { return create_unary<decltype(kFormula), Types, Result>(node, kFormula); }}
      .in_fp32_elements();
}

template <class Formula, class Types = Floats, class Result = void>
constexpr Row unary(std::string_view op_type, uint32_t since_version) {
  return Row{"", op_type, since_version, accepts_one<Types>,
             [](const Node& node) { return create_unary<Formula, Types, Result>(node, Formula(node)); }}
      .in_fp32_elements();
}

// ---- Formulas with attributes --------------------------------------------------------------------------------------
// Formulas must be inlined into their loops: a loop with a call is not vectorized, which the test cpu_vector_clones
// detects.

// Computes e^x - 1 for x <= 0. For float, x > 0 counts as 0.
[[gnu::always_inline]] inline auto exp_minus_one(auto x) {
  if constexpr (std::is_same_v<decltype(x), float>)
    return expm1_formula(x);
  else
    return std::expm1(x);
}

struct Elu {
  float alpha;
  explicit Elu(const Node& node) : alpha(node.attr("alpha", 1.0f)) {}
  [[gnu::always_inline]] auto operator()(auto x) const { return x < 0 ? alpha * exp_minus_one(x) : x; }
};

struct Selu {
  float alpha, gamma;
  explicit Selu(const Node& node)
      : alpha(node.attr("alpha", 1.67326319217681884765625f)), gamma(node.attr("gamma", 1.05070102214813232421875f)) {}
  [[gnu::always_inline]] auto operator()(auto x) const { return gamma * (x > 0 ? x : alpha * exp_minus_one(x)); }
};

struct Celu {
  float alpha;
  explicit Celu(const Node& node) : alpha(node.attr("alpha", 1.0f)) {}
  [[gnu::always_inline]] auto operator()(auto x) const { return x > 0 ? x : alpha * exp_minus_one(x / alpha); }
};
// Celu with a negative alpha takes exponentials of numbers above 0, which exp_minus_one does not compute.
struct RisingCelu : Celu {
  using Celu::Celu;
  auto operator()(auto x) const { return x > 0 ? x : alpha * std::expm1(x / alpha); }
};
std::unique_ptr<Kernel> create_celu(const Node& node) {
  return node.attr("alpha", 1.0f) < 0 ? create_unary<RisingCelu, Floats, void>(node, RisingCelu(node))
                                      : create_unary<Celu, Floats, void>(node, Celu(node));
}

struct LeakyRelu {
  float alpha;
  explicit LeakyRelu(const Node& node) : alpha(node.attr("alpha", 0.01f)) {}
  auto operator()(auto x) const { return x < 0 ? alpha * x : x; }
};

struct ThresholdedRelu {
  float alpha;
  explicit ThresholdedRelu(const Node& node) : alpha(node.attr("alpha", 1.0f)) {}
  template <class T>
  T operator()(T x) const {
    return x > alpha ? x : T(0);
  }
};

struct HardSigmoid {
  float alpha, beta;
  explicit HardSigmoid(const Node& node) : alpha(node.attr("alpha", 0.2f)), beta(node.attr("beta", 0.5f)) {}
  template <class T>
  T operator()(T x) const {
    return std::clamp(T(alpha) * x + T(beta), T(0), T(1));
  }
};

struct Swish {
  float alpha;
  explicit Swish(const Node& node) : alpha(node.attr("alpha", 1.0f)) {}
  [[gnu::always_inline]] auto operator()(auto x) const {
    if constexpr (std::is_same_v<decltype(x), float>)
      return x * sigmoid_formula(alpha * x);
    else
      return x / (1 + std::exp(-alpha * x));
  }
};

struct Shrink {
  float lambd, bias;
  explicit Shrink(const Node& node) : lambd(node.attr("lambd", 0.5f)), bias(node.attr("bias", 0.0f)) {}
  template <class T>
  T operator()(T value) const {
    using Wide = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const Wide x = static_cast<Wide>(value), shrunk = x < -lambd ? x + bias : x > lambd ? x - bias : Wide(0);
    if constexpr (std::is_integral_v<T>)
      return integer_of<T>(shrunk);
    else
      return shrunk;
  }
};

struct Gelu {
  bool tanh;
  explicit Gelu(const Node& node) : tanh(node.attr("approximate", "none") == "tanh") {}
  template <class T>
  T operator()(T x) const {
    if (tanh) return T(0.5) * x * (1 + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
    return T(0.5) * x * (1 + std::erf(x * T(0.7071067811865476)));
  }
};

struct IsInf {
  bool positive, negative;
  explicit IsInf(const Node& node)
      : positive(node.attr("detect_positive", int64_t{1}) != 0),
        negative(node.attr("detect_negative", int64_t{1}) != 0) {}
  bool operator()(auto x) const { return std::isinf(x) && (x > 0 ? positive : negative); }
};

struct IsNan {
  explicit IsNan(const Node&) {}
  bool operator()(auto x) const { return std::isnan(x); }
};

// Predicates of floats. For 8-bit floats, a table has the result for each bit pattern.
constexpr bp_dtype_set_t kFloat8Types = just(BP_DTYPE_FLOAT8E4M3FN) | just(BP_DTYPE_FLOAT8E4M3FNUZ) |
                                        just(BP_DTYPE_FLOAT8E5M2) | just(BP_DTYPE_FLOAT8E5M2FNUZ);

Verdict supports_predicate(const Node& node) {
  return accepts(node, 1, {kFloatTypes | kFloat8Types});
}

template <class Formula>
std::unique_ptr<Kernel> create_predicate(const Node& node) {
  const Formula formula(node);
  const Minifloat* format = minifloat(node.input_type(0).dtype);
  if (format == nullptr) return create_unary<Formula, Floats, Bool>(node, formula);
  std::array<bool, 256> table;
  for (size_t pattern = 0; pattern < table.size(); ++pattern)
    table[pattern] = formula(decode(*format, static_cast<uint8_t>(pattern)));
  return make_kernel([table](Tensors inputs) {
    return make_plan({inputs[0].shape}, [table](Tensors in, Tensors out) {
      const auto* x = in[0].as<uint8_t>();
      for (int64_t i = 0; i < in[0].shape.elements(); ++i) out[0].as<Bool>()[i] = Bool(table[x[i]]);
    });
  });
}

template <class Formula>
constexpr Row predicate(std::string_view op_type, uint32_t since_version) {
  return {"", op_type, since_version, supports_predicate, create_predicate<Formula>};
}

Verdict supports_gelu(const Node& node) {
  if (Verdict verdict = accepts_one<Floats>(node); !verdict) return verdict;
  return attribute_in(node, "approximate", "none", {"none", "tanh"});
}

constexpr Row with_check(Row row, Verdict (*supports)(const Node&)) {
  row.supports = supports;
  return row;
}

// ---- The table -----------------------------------------------------------------------------------------------------

constexpr auto kNegate = []<class T>(T x) -> T {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
  else
    return -x;
};
constexpr auto kAbsolute = []<class T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else
    return x < 0 ? kNegate(x) : x;
};
constexpr auto kLogistic = [](auto x) {  // takes exponentials of numbers <= 0 only, which do not overflow
  const auto e = std::exp(-std::fabs(x));
  return (x < 0 ? e : decltype(e)(1)) / (1 + e);
};
constexpr auto kSoftplus = []<class T>(T x) __attribute__((always_inline)) -> T {
  if constexpr (std::is_same_v<T, float>)
    return (x < 0 ? 0.0f : x) + log1p_formula(exp_formula(-std::fabs(x)));  // NaN stays NaN
  else
    return std::max(x, T(0)) + std::log1p(std::exp(-std::fabs(x)));
};
// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x · (e^x + 2). Beyond 30 it is 1.
constexpr auto kMish = []<class T>(T x) __attribute__((always_inline)) -> T {
  if constexpr (std::is_same_v<T, float>) {
    const float e = exp_formula(x > 30 ? 30.0f : x), n = e * (e + 2);
    return x * (n / (n + 2));
  } else {
    return x * std::tanh(kSoftplus(x));
  }
};
constexpr auto kHardSwish = []<class T>(T x) { return x * std::clamp(x / 6 + T(0.5), T(0), T(1)); };

// Creates a kernel for the row kPlain that computes floats with the vectorized loop kRow (kernels/simd/vector_math.h).
template <const Row& kPlain, void (*kRow)(const float* x, float* y, int64_t n)>
std::unique_ptr<Kernel> create_by_rows(const Node& node) {
  std::shared_ptr<const Kernel> definition = kPlain.create(node);
  return make_kernel([definition](const PlanContext& context, Tensors inputs) -> Plan {
    if (inputs[0].dtype != BP_DTYPE_FLOAT || context.reference) return definition->plan(context, inputs);
    Plan plan = make_plan({inputs[0].shape},
                          [n = inputs[0].stored()](Tensors in, Tensors out) {
                            parallel(n, kCheapGrain / 2, [&](int64_t begin, int64_t end) {
                              kRow(in[0].as<float>() + begin, out[0].as<float>() + begin, end - begin);
                            });
                            if (out[0].format == Format::kBlocked) clear_padding(out[0]);
                          },
                          {.inplace = 0});
    keep_format(plan, inputs);
    return plan;
  });
}
template <const Row& kPlain, void (*kRow)(const float*, float*, int64_t)>
constexpr Row by_rows() {
  Row fast = kPlain;
  fast.create = create_by_rows<kPlain, kRow>;
  return fast;
}

constexpr Row kRelu = unary<[](auto x) { return x < 0 ? decltype(x)(0) : x; }, SignedNumbers>("Relu", 6);
constexpr Row kExp = unary<[](auto x) { return std::exp(x); }>("Exp", 6);
constexpr Row kErf = unary<[](auto x) { return std::erf(x); }>("Erf", 9);
constexpr Row kLog = unary<[](auto x) { return std::log(x); }>("Log", 6);
constexpr Row kSin = unary<[](auto x) { return std::sin(x); }>("Sin", 7);
constexpr Row kCos = unary<[](auto x) { return std::cos(x); }>("Cos", 7);
constexpr Row kAtan = unary<[](auto x) { return std::atan(x); }>("Atan", 7);
constexpr Row kTanh = unary<[](auto x) { return std::tanh(x); }>("Tanh", 6);
constexpr Row kSigmoid = unary<kLogistic>("Sigmoid", 6);
constexpr Row kGelu = with_check(unary<Gelu>("Gelu", 20), supports_gelu);

std::unique_ptr<Kernel> create_gelu(const Node& node) {
  return Gelu(node).tanh ? create_by_rows<kGelu, gelu_tanh_row>(node) : create_by_rows<kGelu, gelu_row>(node);
}

}  // namespace

[[gnu::cold]] std::span<const Row> unary_rows() {
  static constexpr Row kRows[] = {
      unary<kAbsolute, Numbers>("Abs", 6),
      unary<kNegate, SignedNumbers>("Neg", 6),
      unary<[](auto x) { return (x > 0) - (x < 0) + (x != x ? x : decltype(x)(0)); }, Numbers>("Sign", 9),
      unary<[](auto x) { return std::ceil(x); }>("Ceil", 6),
      unary<[](auto x) { return std::floor(x); }>("Floor", 6),
      unary<[](auto x) { return std::nearbyint(x); }>("Round", 11),
      unary<[](auto x) { return 1 / x; }>("Reciprocal", 6),
      unary<[](auto x) { return std::sqrt(x); }>("Sqrt", 6),
      by_rows<kExp, exp_row>(),
      by_rows<kLog, log_row>(),
      by_rows<kErf, erf_row>(),
      by_rows<kSin, sin_row>(),
      by_rows<kCos, cos_row>(),
      unary<[](auto x) { return std::tan(x); }>("Tan", 7),
      unary<[](auto x) { return std::asin(x); }>("Asin", 7),
      unary<[](auto x) { return std::acos(x); }>("Acos", 7),
      by_rows<kAtan, atan_row>(),
      unary<[](auto x) { return std::sinh(x); }>("Sinh", 9),
      unary<[](auto x) { return std::cosh(x); }>("Cosh", 9),
      by_rows<kTanh, tanh_row>(),
      unary<[](auto x) { return std::asinh(x); }>("Asinh", 9),
      unary<[](auto x) { return std::acosh(x); }>("Acosh", 9),
      unary<[](auto x) { return std::atanh(x); }>("Atanh", 9),
      by_rows<kRelu, rectify>(),
      by_rows<kSigmoid, sigmoid_row>(),
      unary<kSoftplus>("Softplus", 1),
      unary<[](auto x) { return x / (1 + std::fabs(x)); }>("Softsign", 1),
      unary<kHardSwish>("HardSwish", 14),
      unary<kMish>("Mish", 18),
      unary<Elu>("Elu", 6),
      unary<Selu>("Selu", 6),
      Row{"", "Celu", 12, accepts_one<Floats>, create_celu}.in_fp32_elements(),
      unary<LeakyRelu>("LeakyRelu", 6),
      unary<ThresholdedRelu>("ThresholdedRelu", 10),
      unary<HardSigmoid>("HardSigmoid", 6),
      unary<Swish>("Swish", 24),
      unary<Shrink, Numbers>("Shrink", 9),
      Row{"", "Gelu", 20, supports_gelu, create_gelu}.in_fp32_elements(),
      predicate<IsNan>("IsNaN", 9),
      predicate<IsInf>("IsInf", 10),
      unary<[](bool x) { return !x; }, Booleans>("Not", 1),
      unary<[](auto x) { return ~x; }, Integers>("BitwiseNot", 18),
  };
  return kRows;
}

}  // namespace backplane::cpu
