// SPDX-License-Identifier: Apache-2.0
// Elementwise operators, with one input or with several that broadcast.
#include <algorithm>
#include <cmath>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status broadcast_inputs(Context& c) {
  Shape shape;
  for (size_t slot = 0; slot < c.inputs(); ++slot) {
    if (!c.has(slot)) continue;
    if (!c.ranked(slot)) return {};
    BP_TRY(c.broadcast(shape, c.shape(slot), shape));
  }
  return c.inputs() ? c.set_shape(0, shape) : Status();
}

bool floating(const Context& c) {
  bp_dtype_t dtype = c.input(0).dtype;
  return dtype == BP_DTYPE_FLOAT || dtype == BP_DTYPE_DOUBLE;
}

// Rounds to the data type of the node's first input.
Scalar rounded(const Context& c, double value) {
  return Scalar::of_real(c.input(0).dtype == BP_DTYPE_FLOAT ? static_cast<float>(value) : value);
}

bool literal(const Scalar& s) {
  return s.kind == Scalar::kNumber || s.kind == Scalar::kReal;
}
double real_of(const Scalar& s) {
  return s.kind == Scalar::kReal ? s.real_value : static_cast<double>(s.value);
}

// Converts a real number such as 2.0 to the integer 2, for arithmetic with symbols.
Scalar whole(const Scalar& s) {
  bool exact = s.kind == Scalar::kReal && std::abs(s.real_value) < 1e15 && std::trunc(s.real_value) == s.real_value;
  return exact ? Scalar(static_cast<int64_t>(s.real_value)) : s;
}

// Sets the output's known elements to f of pairs of input elements. A single element pairs with every element of the
// other input. Elements of other broadcasts are not tracked.
template <class F>
void combine(Context& c, size_t left, size_t right, F&& f) {
  const KnownData* a = c.elements(left);
  const KnownData* b = c.elements(right);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return;
  size_t count = a->size() == 1 ? b->size() : a->size();
  KnownData result(count);
  for (size_t i = 0; i < count; ++i) result[i] = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
  c.set_known_data(0, std::move(result));
}

using Exact = Scalar (Expressions::*)(const Scalar&, const Scalar&);
using Real = double (*)(double, double);

template <Exact kExact, Real kReal>
Status arithmetic(Context& c) {
  BP_TRY(broadcast_inputs(c));
  if (c.inputs() != 2) return {};
  combine(c, 0, 1, [&](const Scalar& a, const Scalar& b) -> Scalar {
    if (!floating(c)) return (c.math().*kExact)(a, b);
    if (literal(a) && literal(b)) return rounded(c, kReal(real_of(a), real_of(b)));
    // Expressions are integers. An unknown element may be NaN or infinite instead, so its product with 0 is unknown.
    const Scalar x = whole(a), y = whole(b);
    if (!x.is_integer() || !y.is_integer()) return {};
    // Real and integer division of symbols differ, except when dividing by 1.
    if (kExact == &Expressions::truncate_divide && !y.is(1)) return {};
    return (c.math().*kExact)(x, y);
  });
  return {};
}

double plus(double a, double b) {
  return a + b;
}
double minus(double a, double b) {
  return a - b;
}
double times(double a, double b) {
  return a * b;
}
double over(double a, double b) {
  return a / b;
}
double least(double a, double b) {
  return std::isnan(a) || a < b ? a : b;
}
double most(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

Status modulo(Context& c) {
  BP_TRY(broadcast_inputs(c));
  bool truncated = c.integer("fmod") != 0;
  if (floating(c)) return {};
  combine(c, 0, 1, [&](const Scalar& a, const Scalar& b) -> Scalar {
    if (b.is(0)) return {};
    Expressions& m = c.math();
    return m.subtract(a, m.multiply(truncated ? m.truncate_divide(a, b) : m.floor_divide(a, b), b));
  });
  return {};
}

enum class Ordering { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual };

Scalar compare(Expressions& m, Ordering order, const Scalar& a, const Scalar& b) {
  switch (order) {
    case Ordering::kLess:
      return m.upper(a) < m.lower(b) ? Scalar(1) : m.lower(a) >= m.upper(b) || a.same(b) ? Scalar(0) : Scalar();
    case Ordering::kLessEqual:
      return m.upper(a) <= m.lower(b) || a.same(b) ? Scalar(1) : m.lower(a) > m.upper(b) ? Scalar(0) : Scalar();
    case Ordering::kGreater:
      return compare(m, Ordering::kLess, b, a);
    case Ordering::kGreaterEqual:
      return compare(m, Ordering::kLessEqual, b, a);
    case Ordering::kEqual:
      return a.same(b) ? Scalar(1) : m.upper(a) < m.lower(b) || m.upper(b) < m.lower(a) ? Scalar(0) : Scalar();
  }
  return {};
}

template <Ordering kOrder>
Status comparison(Context& c) {
  BP_TRY(broadcast_inputs(c));
  if (floating(c)) return {};
  combine(c, 0, 1, [&](const Scalar& a, const Scalar& b) -> Scalar {
    bool open = a.kind == Scalar::kUnknown || b.kind == Scalar::kUnknown;
    return open ? Scalar() : compare(c.math(), kOrder, a, b);
  });
  return {};
}

Status logical_and(Context& c) {
  BP_TRY(broadcast_inputs(c));
  combine(c, 0, 1, [](const Scalar& a, const Scalar& b) -> Scalar {
    return a.is(0) || b.is(0) ? Scalar(0) : a.is(1) && b.is(1) ? Scalar(1) : Scalar();
  });
  return {};
}

Status logical_or(Context& c) {
  BP_TRY(broadcast_inputs(c));
  combine(c, 0, 1, [](const Scalar& a, const Scalar& b) -> Scalar {
    return a.is(1) || b.is(1) ? Scalar(1) : a.is(0) && b.is(0) ? Scalar(0) : Scalar();
  });
  return {};
}

Status logical_not(Context& c) {
  map_known_data(c, [](const Scalar& x) { return x.is_number() ? Scalar(x.value == 0) : Scalar(); });
  return same_shape(c);
}

Status negate(Context& c) {
  map_known_data(c, [&](const Scalar& x) {
    return x.kind == Scalar::kReal ? Scalar::of_real(-x.real_value) : c.math().multiply(x, -1);
  });
  return same_shape(c);
}

Status absolute(Context& c) {
  map_known_data(c, [&](const Scalar& x) -> Scalar {
    if (x.kind == Scalar::kReal) return Scalar::of_real(std::abs(x.real_value));
    return c.math().lower(x) >= 0 ? x : x.is_number() ? c.math().multiply(x, -1) : Scalar();
  });
  return same_shape(c);
}

template <double (*kRound)(double)>
Status round_to_whole(Context& c) {
  map_known_data(c,
                 [](const Scalar& x) { return x.kind == Scalar::kReal ? Scalar::of_real(kRound(x.real_value)) : x; });
  return same_shape(c);
}

double down(double x) {
  return std::floor(x);
}
double up(double x) {
  return std::ceil(x);
}
double to_even(double x) {
  return std::nearbyint(x);
}

Status identity(Context& c) {
  c.copy_type(0, c.input(0));
  map_known_data(c, [](const Scalar& x) { return x; });
  return {};
}

Status where(Context& c) {
  BP_TRY(broadcast_inputs(c));
  const KnownData* condition = c.elements(0);
  const KnownData* x = c.elements(1);
  const KnownData* y = c.elements(2);
  if (!condition || !x || !y) return {};
  size_t count = std::max({condition->size(), x->size(), y->size()});
  for (const KnownData* one : {condition, x, y}) {
    if (one->size() != count && one->size() != 1) return {};
  }
  auto at = [](const KnownData* one, size_t i) { return (*one)[one->size() == 1 ? 0 : i]; };
  KnownData result(count);
  for (size_t i = 0; i < count; ++i) {
    Scalar chosen = at(condition, i), left = at(x, i), right = at(y, i);
    if (chosen.is_number()) {
      result[i] = chosen.value ? left : right;
    } else if (left.same(right)) {
      result[i] = left;
    }
  }
  c.set_known_data(0, std::move(result));
  return {};
}

Scalar converted(Context& c, const Scalar& x, bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return x.is_number()             ? Scalar::of_real(static_cast<float>(x.value))
             : x.kind == Scalar::kReal ? Scalar::of_real(static_cast<float>(x.real_value))
                                       : x;
    case BP_DTYPE_DOUBLE:
      return x.is_number() ? Scalar::of_real(static_cast<double>(x.value)) : x;
    case BP_DTYPE_BOOL:
      if (literal(x)) return Scalar(real_of(x) != 0);
      return c.math().lower(x) > 0 ? Scalar(1) : Scalar();
    case BP_DTYPE_INT64:
    case BP_DTYPE_INT32:
    case BP_DTYPE_UINT8:
      if (x.kind != Scalar::kReal) return x;
      return std::abs(x.real_value) < 1e15 ? Scalar(static_cast<int64_t>(x.real_value)) : Scalar();
    default:
      return {};
  }
}

Status cast_to(Context& c) {
  BP_TRY(c.set_dtype_number(0, c.integer("to")));
  bp_dtype_t dtype = c.output(0).dtype;
  map_known_data(c, [&](const Scalar& x) { return converted(c, x, dtype); });
  return same_shape(c);
}

Status cast_like(Context& c) {
  bp_dtype_t dtype = c.output(0).dtype;
  map_known_data(c, [&](const Scalar& x) { return converted(c, x, dtype); });
  return same_shape(c);
}

Status bit_cast(Context& c) {
  BP_TRY(c.set_dtype_number(0, c.integer("to")));
  return same_shape(c);
}

// The slope broadcasts to x, and not the reverse.
Status prelu(Context& c) {
  if (c.ranked(0) && c.ranked(1)) {
    const Shape x = c.shape(0);
    Shape shape;
    BP_TRY(c.broadcast(x, c.shape(1), shape));
    bool enlarged = shape.size() > x.size();
    for (size_t d = 0; d < x.size() && !enlarged; ++d) enlarged = x[d].is(1) && shape[d].is_number() && !shape[d].is(1);
    if (enlarged)
      return c.fail("the slope's shape " + c.describe(c.shape(1)) + " does not broadcast to that of x, " +
                    c.describe(x));
  }
  return same_shape(c);
}

// The inputs have the same shape.
Status swiglu(Context& c) {
  if (!c.ranked(0) || !c.ranked(1)) return same_shape(c);
  Shape shape = c.shape(0);
  const Shape other = c.shape(1);
  if (shape.size() != other.size())
    return c.fail("A has shape " + c.describe(shape) + " and B " + c.describe(other) + ", but they must be equal");
  for (size_t d = 0; d < shape.size(); ++d) BP_TRY(c.merge(shape[d], other[d], shape[d], "extents of A and B"));
  return c.set_shape(0, shape);
}

Status dropout(Context& c) {
  c.copy_shape(0, 0);
  c.copy_shape(1, 0);
  c.set_dtype(1, BP_DTYPE_BOOL);
  return {};
}

Status is_bool(Context& c) {
  c.set_dtype(0, BP_DTYPE_BOOL);
  return same_shape(c);
}

}  // namespace

std::span<const RuleRow> elementwise_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Abs", absolute},
      {"", "Acos", same_shape},
      {"", "Acosh", same_shape},
      {"", "Add", arithmetic<&Expressions::add, plus>},
      {"", "And", logical_and},
      {"", "Asin", same_shape},
      {"", "Asinh", same_shape},
      {"", "Atan", same_shape},
      {"", "Atanh", same_shape},
      {"", "BitCast", bit_cast},
      {"", "BitShift", broadcast_inputs},
      {"", "BitwiseAnd", broadcast_inputs},
      {"", "BitwiseNot", same_shape},
      {"", "BitwiseOr", broadcast_inputs},
      {"", "BitwiseXor", broadcast_inputs},
      {"", "Cast", cast_to},
      {"", "CastLike", cast_like},
      {"", "Ceil", round_to_whole<up>},
      {"", "Celu", same_shape},
      {"", "Clip", same_shape},
      {"", "Cos", same_shape},
      {"", "Cosh", same_shape},
      {"", "CumProd", same_shape},
      {"", "CumSum", same_shape},
      {"", "Div", arithmetic<&Expressions::truncate_divide, over>},
      {"", "Dropout", dropout},
      {"", "Elu", same_shape},
      {"", "Equal", comparison<Ordering::kEqual>},
      {"", "Erf", same_shape},
      {"", "Exp", same_shape},
      {"", "Floor", round_to_whole<down>},
      {"", "Gelu", same_shape},
      {"", "Greater", comparison<Ordering::kGreater>},
      {"", "GreaterOrEqual", comparison<Ordering::kGreaterEqual>},
      {"", "HardSigmoid", same_shape},
      {"", "HardSwish", same_shape},
      {"", "Identity", identity},
      {"", "IsInf", is_bool},
      {"", "IsNaN", is_bool},
      {"", "LeakyRelu", same_shape},
      {"", "Less", comparison<Ordering::kLess>},
      {"", "LessOrEqual", comparison<Ordering::kLessEqual>},
      {"", "Log", same_shape},
      {"", "Max", arithmetic<&Expressions::max, most>},
      {"", "Mean", broadcast_inputs},
      {"", "Min", arithmetic<&Expressions::min, least>},
      {"", "Mish", same_shape},
      {"", "Mod", modulo},
      {"", "Mul", arithmetic<&Expressions::multiply, times>},
      {"", "Neg", negate},
      {"", "Not", logical_not},
      {"", "Or", logical_or},
      {"", "PRelu", prelu},
      {"", "Pow", broadcast_inputs},
      {"", "Reciprocal", same_shape},
      {"", "Relu", same_shape},
      {"", "Round", round_to_whole<to_even>},
      {"", "Selu", same_shape},
      {"", "Shrink", same_shape},
      {"", "Sigmoid", same_shape},
      {"", "Sign", same_shape},
      {"", "Sin", same_shape},
      {"", "Sinh", same_shape},
      {"", "Softplus", same_shape},
      {"", "Softsign", same_shape},
      {"", "Sqrt", same_shape},
      {"", "Sub", arithmetic<&Expressions::subtract, minus>},
      {"", "Sum", broadcast_inputs},
      {"", "SwiGLU", swiglu},
      {"", "Swish", same_shape},
      {"", "Tan", same_shape},
      {"", "Tanh", same_shape},
      {"", "ThresholdedRelu", same_shape},
      {"", "Where", where},
      {"", "Xor", broadcast_inputs},
  };
  return kRows;
}

}  // namespace backplane::ops
