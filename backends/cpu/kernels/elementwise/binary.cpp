// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two inputs, or of any number, combined two at a time, and Where. All except SwiGLU
// broadcast. Each operator is a table row.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "kernels/common/broadcast.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/elementwise/formula.h"
#include "kernels/elementwise/select_row.h"
#include "kernels/simd/lanes.h"
#include "kernels/simd/vector_math.h"
#include "runtime/processor.h"

namespace backplane::cpu {
namespace {

// Types that have separate loops for operands with strides 1 and 1, 1 and 0, and 0 and 1. Other strides are rare.
template <class T>
constexpr bool kIsCommon = kIsFloating<T> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

// The loop of an operator over one innermost row of a broadcast.
struct Loop {
  using Row = void (*)(const AnyFormula& formula, const void* a, int64_t stride_a, const void* b, int64_t stride_b,
                       void* r, int64_t n);
  Row row;
  AnyFormula formula;
  int64_t size_a, size_b, size_r;  // bytes per element
  bool floats;                     // both operands and the result are floats
};

template <class R, class A, class B, class Formula>
[[gnu::always_inline]] inline void compute_elements(const AnyFormula& any, const void* from_a, int64_t stride_a,
                                                    const void* from_b, int64_t stride_b, void* to, int64_t n) {
  const Formula formula = any.as<Formula>();
  const auto* a = static_cast<const A*>(from_a);
  const auto* b = static_cast<const B*>(from_b);
  auto* r = static_cast<R*>(to);
  const auto f = [&](A x, B y) {
    return static_cast<R>(formula(static_cast<compute_t<A>>(x), static_cast<compute_t<B>>(y)));
  };
  if constexpr (kIsCommon<A> && std::is_same_v<A, B>) {
    if (stride_a == 1 && stride_b == 1) {
#pragma GCC ivdep  // iterations are independent, even in place
      for (int64_t i = 0; i < n; ++i) r[i] = f(a[i], b[i]);
      return;
    }
    if (stride_a == 1 && stride_b == 0) {
      const B y = *b;
#pragma GCC ivdep  // iterations are independent, even in place
      for (int64_t i = 0; i < n; ++i) r[i] = f(a[i], y);
      return;
    }
    if (stride_a == 0 && stride_b == 1) {
      const A x = *a;
#pragma GCC ivdep  // iterations are independent, even in place
      for (int64_t i = 0; i < n; ++i) r[i] = f(x, b[i]);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) r[i] = f(a[i * stride_a], b[i * stride_b]);
}

template <class R, class A, class B, class Formula>
void compute_row(const AnyFormula& any, const void* a, int64_t stride_a, const void* b, int64_t stride_b, void* to,
                 int64_t n) {
  compute_elements<R, A, B, Formula>(any, a, stride_a, b, stride_b, to, n);
}
template <class Formula>
FOR_AVX2 void compute_floats_avx2(const AnyFormula& any, const void* a, int64_t stride_a, const void* b,
                                  int64_t stride_b, void* to, int64_t n) {
  compute_elements<float, float, float, Formula>(any, a, stride_a, b, stride_b, to, n);
}

template <class R, class A, class B, class Formula>
Loop loop_of(const Formula& formula) {
  constexpr bool kFloats = std::is_same_v<R, float> && std::is_same_v<A, float> && std::is_same_v<B, float>;
  Loop::Row row = compute_row<R, A, B, Formula>;
  if constexpr (kFloats) {
    if (processor().has(Instructions::kAvx2)) row = compute_floats_avx2<Formula>;
  }
  return {row, AnyFormula(formula), sizeof(A), sizeof(B), sizeof(R), kFloats};
}

void compute(const Loop& loop, const Broadcast<2>& walk, const void* a, const void* b, void* r) {
  parallel(walk.elements, kCheapGrain, [&](int64_t begin, int64_t end) {
    walk.rows(begin, end, [&](int64_t at, const std::array<int64_t, 2>& offset, int64_t n) {
      loop.row(loop.formula, static_cast<const std::byte*>(a) + offset[0] * loop.size_a, walk.inner_stride(0),
               static_cast<const std::byte*>(b) + offset[1] * loop.size_b, walk.inner_stride(1),
               static_cast<std::byte*>(r) + at * loop.size_r, n);
    });
  });
}

// Returns the error for two or more shapes that do not broadcast to a common one.
Plan unequal_shapes(std::span<const Shape> shapes) {
  std::string list = to_string(shapes.front());
  for (const Shape& shape : shapes.subspan(1)) list += (&shape == &shapes.back() ? " and " : ", ") + to_string(shape);
  return fail("shapes " + list + " do not broadcast");
}

// How to read two operands, one of which is blocked and has the extents of the result. The other has these extents too,
// or one number per channel, or is a single number. In other cases, blocked_operands() returns nullopt.
struct BlockedOperands {
  std::vector<Format> input_formats;
  Broadcast<2> walk;
};
std::optional<BlockedOperands> blocked_operands(Tensors inputs, const Shape& result) {
  const auto is_blocked = [&](const Tensor& x) { return x.format == Format::kBlocked && x.shape == result; };
  if (!is_blocked(inputs[0]) && !is_blocked(inputs[1])) return std::nullopt;
  std::vector<Format> input_formats;
  std::array<Shape, 2> views;
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = inputs[i].shape;
    bool one = shape.elements() == 1;
    bool per_channel = shape.rank() == result.rank() && shape[1] == result[1] && shape.elements(2, shape.rank()) == 1;
    if (!one && !per_channel && !(shape == result)) return std::nullopt;
    input_formats.push_back(one ? Format::kDense : Format::kBlocked);
    views[i] = one ? Shape{1} : blocked_view(shape);
  }
  return BlockedOperands{input_formats, Broadcast<2>(blocked_view(result), views)};
}

Plan plan_binary(Tensors inputs, const Loop& loop) {
  const Shape shapes[] = {inputs[0].shape, inputs[1].shape};
  const auto shape = broadcast_shape(shapes);
  if (!shape) return unequal_shapes(shapes);
  if (loop.floats) {
    if (auto blocked = blocked_operands(inputs, *shape)) {
      Plan plan = make_plan({*shape},
                            [loop, walk = blocked->walk](Tensors in, Tensors out) {
                              compute(loop, walk, in[0].data, in[1].data, out[0].data);
                              clear_padding(out[0]);
                            },
                            {.inplace = shapes[0] == *shape ? 0 : 1});
      plan.input_formats = blocked->input_formats;
      plan.output_format = Format::kBlocked;
      return plan;
    }
  }
  int inplace = -1;
  if (loop.size_r == loop.size_b && shapes[1] == *shape) inplace = 1;
  if (loop.size_r == loop.size_a && shapes[0] == *shape) inplace = 0;
  return make_plan({*shape},
                   [loop, walk = Broadcast<2>(*shape, {shapes[0], shapes[1]})](Tensors in, Tensors out) {
                     compute(loop, walk, in[0].data, in[1].data, out[0].data);
                   },
                   {.inplace = inplace});
}

std::unique_ptr<Kernel> make_binary(const Loop& loop) {
  return make_kernel([loop](Tensors inputs) -> Plan { return plan_binary(inputs, loop); });
}

template <class Formula, class Types, class Result>
std::unique_ptr<Kernel> create_binary(const Node& node, Formula formula) {
  return make_binary(dispatch<Types>(node.input_type(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return loop_of<std::conditional_t<std::is_void_v<Result>, T, Result>, T, T>(formula);
  }));
}

template <class Types, class Result = void>
Verdict accepts_two(const Node& node) {
  constexpr bp_dtype_set_t kTypes = set_of(Types{});
  if (Verdict verdict = accepts(node, 2, {kTypes, kTypes}); !verdict) return verdict;
  if (Verdict verdict = same_type(node, 0, 1); !verdict) return verdict;
  const bp_dtype_t result = std::is_void_v<Result> ? node.input_type(0).dtype : BP_DTYPE_BOOL;
  if (node.output_type(0).dtype == result) return yes();
  return no(BP_REASON_DTYPE, std::string("its output has data type ") + dtype_name(node.output_type(0).dtype) +
                                 ", but the operator computes " + dtype_name(result));
}

template <auto kFormula, class Types, class Result = void>
constexpr Row binary(std::string_view op_type, uint32_t since_version) {
  return Row{"", op_type, since_version, accepts_two<Types, Result>,
             [](const Node& node) { return create_binary<decltype(kFormula), Types, Result>(node, kFormula); }}
      .in_fp32_elements();
}

template <class Formula, class Types>
constexpr Row binary(std::string_view op_type, uint32_t since_version) {
  return Row{"", op_type, since_version, accepts_two<Types>,
             [](const Node& node) { return create_binary<Formula, Types, void>(node, Formula(node)); }}
      .in_fp32_elements();
}

// ---- Any number of inputs, accumulated in order --------------------------------------------------------------------

// Divides a sum of `count` inputs by `count`, which results in the mean.
using Divide = void (*)(void* sum, int64_t n, size_t count);
template <class T>
void divide_by_count(void* sum, int64_t n, size_t count) {
  using C = compute_t<T>;
  const C divisor = static_cast<C>(count);
  T* r = static_cast<T*>(sum);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<T>(static_cast<C>(r[i]) / divisor);
}

Plan plan_variadic(Tensors inputs, const Loop& loop, Divide divide) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape);
  const auto shape = broadcast_shape(shapes);
  if (!shape) return unequal_shapes(shapes);
  if (divide == nullptr && inputs.size() == 2) return plan_binary(inputs, loop);
  const Broadcast<2> first(*shape, {shapes[0], shapes[shapes.size() > 1 ? 1 : 0]});
  std::vector<Broadcast<2>> rest;
  for (size_t i = 2; i < shapes.size(); ++i) rest.emplace_back(*shape, std::array{*shape, shapes[i]});
  const auto run = [=](Tensors in, Tensors out) {
    void* result = out[0].data;
    if (in.size() == 1) {
      std::memmove(result, in[0].data, static_cast<size_t>(first.elements * loop.size_r));
      return;
    }
    compute(loop, first, in[0].data, in[1].data, result);
    for (size_t i = 2; i < in.size(); ++i) compute(loop, rest[i - 2], result, in[i].data, result);
    if (divide != nullptr) divide(result, first.elements, in.size());
  };
  return make_plan({*shape}, run, {.inplace = shapes[0] == *shape ? 0 : -1});
}

template <auto kFormula, class Types, bool kMean = false>
constexpr Row variadic(std::string_view op_type, uint32_t since_version) {
  return Row{"", op_type, since_version, [](const Node& node) { return accepts_variadic(node, set_of(Types{})); },
             [](const Node& node) {
               const auto [loop, divide] = dispatch<Types>(node.input_type(0).dtype, [](auto tag) {
                 using T = typename decltype(tag)::type;
                 return std::pair<Loop, Divide>(loop_of<T, T, T>(kFormula), kMean ? divide_by_count<T> : nullptr);
               });
               return make_kernel([loop = loop, divide = divide](Tensors inputs) -> Plan {
                 return plan_variadic(inputs, loop, divide);
               });
             }}
      .in_fp32_elements();
}

// ---- Formulas: integers wrap, and integer division by zero returns 0 -----------------------------------------------

// The unsigned type, at least 32 bits wide, in which integer arithmetic on T has no undefined behavior.
template <class T>
using wrapping_t = std::make_unsigned_t<std::common_type_t<T, int>>;

constexpr auto kAdd = []<class T>(T a, T b) -> T {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(wrapping_t<T>(a) + wrapping_t<T>(b));
  else
    return a + b;
};
constexpr auto kSubtract = []<class T>(T a, T b) -> T {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(wrapping_t<T>(a) - wrapping_t<T>(b));
  else
    return a - b;
};
constexpr auto kMultiply = []<class T>(T a, T b) -> T {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(wrapping_t<T>(a) * wrapping_t<T>(b));
  else
    return a * b;
};
constexpr auto kDivide = []<class T>(T a, T b) -> T {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return kSubtract(T(0), a);
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
};
constexpr auto kMinimum = []<class T>(T a, T b) -> T { return a != a || a < b ? a : b; };  // a NaN operand is returned
constexpr auto kMaximum = []<class T>(T a, T b) -> T { return a != a || a > b ? a : b; };

struct Mod {
  bool c_style;  // the result has the sign of the dividend; otherwise that of the divisor
  explicit Mod(const Node& node) : c_style(node.attr("fmod", int64_t{0}) != 0) {}
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return !c_style && rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      const T rest = std::fmod(a, b);
      if (!c_style && rest == 0) return std::copysign(rest, b);
      return !c_style && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
};

struct BitShift {
  bool left;
  explicit BitShift(const Node& node) : left(node.attr("direction", "LEFT") == "LEFT") {}
  template <class T>
  T operator()(T a, T b) const {
    if (std::cmp_less(b, 0) || std::cmp_greater_equal(b, sizeof(T) * 8))
      return !left && std::cmp_less(a, 0) ? static_cast<T>(-1) : T{0};
    return static_cast<T>(left ? static_cast<uint64_t>(a) << b : a >> b);
  }
};
// The inputs are the gate and the value that it scales.
struct SwiGlu {
  float alpha;
  explicit SwiGlu(const Node& node) : alpha(node.attr("alpha", 1.0f)) {}
  template <class T>
  [[gnu::always_inline]] T operator()(T gate, T value) const {
    if constexpr (std::is_same_v<T, float>)
      return gate * sigmoid_formula(alpha * gate) * value;
    else
      return gate / (1 + std::exp(-alpha * gate)) * value;
  }
};

constexpr auto kPrelu = []<class T>(T x, T slope) -> T { return x < 0 ? kMultiply(x, slope) : x; };

// The slope broadcasts to x, and not x to the slope.
std::unique_ptr<Kernel> create_prelu(const Node& node) {
  const Loop loop = dispatch<Numbers>(node.input_type(0).dtype, [](auto tag) {
    using T = typename decltype(tag)::type;
    return loop_of<T, T, T>(kPrelu);
  });
  return make_kernel([loop](Tensors inputs) -> Plan {
    const Shape &x = inputs[0].shape, &slope = inputs[1].shape;
    if (const auto shape = broadcast_shape(std::array{x, slope}); !shape || !(*shape == x))
      return fail("slope " + to_string(slope) + " does not broadcast to x " + to_string(x));
    return plan_binary(inputs, loop);
  });
}

// ---- Pow: the result has the type of the base; the exponent may have another type ----------------------------------

// `exponent` is in two's complement if it is negative.
template <class T>
T whole_power(T base, bool is_negative, uint64_t exponent) {
  if (is_negative) return base == 1 ? T(1) : base == T(-1) ? (exponent % 2 == 0 ? T(1) : T(-1)) : T(0);
  T result = 1;
  for (; exponent != 0; exponent >>= 1, base = kMultiply(base, base))
    if (exponent & 1) result = kMultiply(result, base);
  return result;
}

template <class T, class E>
T power(T base, E exponent_of_type) {
  const auto exponent = static_cast<double>(exponent_of_type);
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<E>)  // double would round large exponents, and lose whether they are even
      return whole_power(base, exponent < 0, static_cast<uint64_t>(exponent_of_type));
    if (exponent == std::floor(exponent) && std::fabs(exponent) < 0x1p53)
      return whole_power(base, exponent < 0, static_cast<uint64_t>(static_cast<int64_t>(exponent)));
    const double value = std::pow(static_cast<double>(base), exponent);
    return std::fabs(value) < std::ldexp(1.0, std::numeric_limits<T>::digits) ? static_cast<T>(value) : T(0);
  } else {
    if (exponent == 2) return base * base;
    if constexpr (std::is_same_v<T, float>) return std::pow(base, static_cast<float>(exponent));
    return static_cast<T>(std::pow(base, exponent));
  }
}

using PowerBases = TypeList<float, double, Half, BFloat16, int32_t, int64_t>;

Verdict supports_pow(const Node& node) {
  return accepts(node, 2, {set_of(PowerBases{}), set_of(Numbers{})});
}

std::unique_ptr<Kernel> create_pow(const Node& node) {
  return make_binary(dispatch<PowerBases>(node.input_type(0).dtype, [&](auto base) {
    using A = typename decltype(base)::type;
    return dispatch<Numbers>(node.input_type(1).dtype, [](auto exponent) {
      using B = typename decltype(exponent)::type;
      return loop_of<A, A, B>([](compute_t<A> a, compute_t<B> b) { return power(a, b); });
    });
  }));
}

// ---- Where ---------------------------------------------------------------------------------------------------------

Verdict supports_where(const Node& node) {
  if (Verdict verdict = accepts(node, 3, {just(BP_DTYPE_BOOL), kByteTypes, kByteTypes}); !verdict) return verdict;
  return same_type(node, 1, 2);
}

std::unique_ptr<Kernel> create_where(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    const std::array shapes = {inputs[0].shape, inputs[1].shape, inputs[2].shape};
    const auto shape = broadcast_shape(shapes);
    if (!shape) return unequal_shapes(shapes);
    return make_plan(
        {*shape}, [walk = Broadcast<3>(*shape, shapes), size = bytes_of(inputs[1].dtype, 1)](Tensors in, Tensors out) {
          parallel(walk.elements, kCheapGrain, [&](int64_t begin, int64_t end) {
            walk.rows(begin, end, [&](int64_t at, const std::array<int64_t, 3>& offset, int64_t n) {
              select_row({in[0].as<Bool>() + offset[0], in[1].as<std::byte>() + offset[1] * size,
                          in[2].as<std::byte>() + offset[2] * size, out[0].as<std::byte>() + at * size, n,
                          walk.inner_stride(0), walk.inner_stride(1), walk.inner_stride(2)},
                         size);
            });
          });
        });
  });
}

// Unlike the other operators of two inputs, SwiGLU does not broadcast.
std::unique_ptr<Kernel> create_swiglu(const Node& node) {
  const Loop loop = dispatch<Floats>(node.input_type(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return loop_of<T, T, T>(SwiGlu(node));
  });
  return make_kernel([loop](Tensors inputs) -> Plan {
    if (!(inputs[0].shape == inputs[1].shape))
      return fail("shapes " + to_string(inputs[0].shape) + " and " + to_string(inputs[1].shape) + " differ");
    return plan_binary(inputs, loop);
  });
}

Verdict supports_bit_shift(const Node& node) {
  if (Verdict verdict = accepts_two<Integers>(node); !verdict) return verdict;
  return attribute_in(node, "direction", "", {"LEFT", "RIGHT"});
}

}  // namespace

[[gnu::cold]] std::span<const Row> binary_rows() {
  static constexpr Row kRows[] = {
      binary<kAdd, Numbers>("Add", 7),
      binary<kSubtract, Numbers>("Sub", 7),
      binary<kMultiply, Numbers>("Mul", 7),
      binary<kDivide, Numbers>("Div", 7),
      binary<Mod, Numbers>("Mod", 10),
      Row{"", "Pow", 7, supports_pow, create_pow}.in_fp32_elements(),
      Row{"", "PRelu", 7, accepts_two<Numbers>, create_prelu}.in_fp32_elements(),
      variadic<kAdd, Floats>("Sum", 8),
      variadic<kAdd, Floats, true>("Mean", 8),
      variadic<kMinimum, Numbers>("Min", 8),
      variadic<kMaximum, Numbers>("Max", 8),
      binary<[](auto a, auto b) { return a == b; }, NumbersAndBool, Bool>("Equal", 7).with(kRanksTexts),
      binary<[](auto a, auto b) { return (a < b); }, Numbers, Bool>("Less", 7),
      binary<[](auto a, auto b) { return (a <= b); }, Numbers, Bool>("LessOrEqual", 12),
      binary<[](auto a, auto b) { return (a > b); }, Numbers, Bool>("Greater", 7),
      binary<[](auto a, auto b) { return (a >= b); }, Numbers, Bool>("GreaterOrEqual", 12),
      binary<[](bool a, bool b) { return a && b; }, Booleans>("And", 7),
      binary<[](bool a, bool b) { return a || b; }, Booleans>("Or", 7),
      binary<[](bool a, bool b) { return a != b; }, Booleans>("Xor", 7),
      binary<[](auto a, auto b) { return a & b; }, Integers>("BitwiseAnd", 18),
      binary<[](auto a, auto b) { return a | b; }, Integers>("BitwiseOr", 18),
      binary<[](auto a, auto b) { return a ^ b; }, Integers>("BitwiseXor", 18),
      {"", "BitShift", 11, supports_bit_shift, binary<BitShift, Integers>("BitShift", 11).create},
      Row{"", "SwiGLU", 28, accepts_two<Floats>, create_swiglu}.in_fp32_elements(),
      Row{"", "Where", 9, supports_where, create_where}.with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu
