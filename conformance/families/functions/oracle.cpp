// SPDX-License-Identifier: Apache-2.0
// Oracles of rare elementwise functions and of operations on bits.
#include <bit>
#include <cmath>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

// `scale` is that of Rule::kSmooth: the sum of the magnitudes of intermediate results.
struct Value {
  double result, scale = 1;
};
using Function = Value (*)(const Call& call, double x);

template <Function kFunction>
References smooth(const Call& call) {
  const Array& x = call.in(0);
  require(is_float(x.dtype), "the operator is for floating-point numbers");
  Reference result(Array(x.dtype, x.extents), Rule::smooth());
  for (size_t i = 0; i < x.values.size(); ++i) {
    const Value value = kFunction(call, x.values[i]);
    result.value.values[i] = value.result;
    result.scale.push_back(std::isfinite(value.scale) ? value.scale : 0);
  }
  return {result};
}

// Devices may compute π/2 - asin(x). Near 1 the result is small, but has the rounding errors of operands of about π/2:
// hence a scale of 2.
Value acos_of(const Call&, double x) {
  return {std::acos(x), 2};
}
Value asin_of(const Call&, double x) {
  return {std::asin(x)};
}
Value atan_of(const Call&, double x) {
  return {std::atan(x)};
}
// Devices may compute log(x + √(x² - 1)). The root amplifies the rounding error of x², more so near 1.
Value acosh_of(const Call&, double x) {
  return {std::acosh(x), 1 + x / std::sqrt(x * x - 1)};
}
// Devices may compute log(|x| + √(x² + 1)), which cancels near 0.
Value asinh_of(const Call&, double x) {
  return {std::asinh(x)};
}
Value atanh_of(const Call&, double x) {
  return {std::atanh(x)};
}
// Devices may compute (exp(x) ± exp(-x)) / 2, where exp has an error of 2|x| + 3 ULP.
Value cosh_of(const Call&, double x) {
  return {std::cosh(x), std::cosh(x) * (1 + std::fabs(x))};
}
Value sinh_of(const Call&, double x) {
  return {std::sinh(x), std::cosh(x) * (1 + std::fabs(x))};
}
// Devices may compute sin(x) / cos(x). If both have an absolute error of e, the quotient changes by at most
// e·(1 + |tan(x)|) / |cos(x)|. The last term allows a relative error in each, and in the division.
Value tan_of(const Call&, double x) {
  const double tangent = std::tan(x);
  return {tangent, (1 + std::fabs(tangent)) / std::fabs(std::cos(x)) + 8 * std::fabs(tangent)};
}
Value celu(const Call& call, double x) {
  const double alpha = call.real("alpha", 1);
  return x > 0 ? Value{x, 0} : Value{alpha * std::expm1(x / alpha), std::fabs(alpha)};
}
Value swish(const Call& call, double x) {
  const double steep = call.real("alpha", 1) * x, share = 1 / (1 + std::exp(-steep));
  return {x * share, std::fabs(x) * share * (1 + std::fabs(steep))};
}

// gate·sigmoid(alpha·gate)·value, where the gate is input 0 and the value is input 1.
References swiglu(const Call& call) {
  const Array &gate = call.in(0), &value = call.in(1);
  require(is_float(gate.dtype) && gate.dtype == value.dtype && gate.extents == value.extents,
          "the inputs are not of one floating-point type and shape");
  const double alpha = call.real("alpha", 1);
  std::vector<Tracked> elements;
  for (size_t i = 0; i < gate.values.size(); ++i) {
    const Tracked a = gate.values[i];
    elements.push_back(a * sigmoid(Tracked(alpha) * a) * Tracked(value.values[i]));
  }
  return {tracked_reference(gate.dtype, gate.extents, elements)};
}

References thresholded_relu(const Call& call) {
  Array result = call.in(0);
  for (double& x : result.values) x = x > call.real("alpha", 1) ? x : 0;
  return {Reference(std::move(result), Rule::exact())};
}

References shrink(const Call& call) {
  Array result = call.in(0);
  const double bias = call.real("bias"), limit = call.real("lambd", 0.5);
  for (double& x : result.values) x = x < -limit ? x + bias : x > limit ? x - bias : 0;
  return {Reference(std::move(result), Rule::within(0.5))};
}

References is_inf(const Call& call) {
  const Array& x = call.in(0);
  Array result(BP_DTYPE_BOOL, x.extents);
  const bool negative = call.integer("detect_negative", 1) != 0, positive = call.integer("detect_positive", 1) != 0;
  for (size_t i = 0; i < x.values.size(); ++i)
    result.values[i] = std::isinf(x.values[i]) && (x.values[i] < 0 ? negative : positive);
  return {Reference(std::move(result), Rule::exact())};
}

// 1 for the first of the largest elements along the axis, 0 for all other elements.
References hardmax(const Call& call) {
  const Array& x = call.in(0);
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis", -1), x.rank()));
  Array result(x.dtype, x.extents);
  for_each_index(x.extents, [&](const Index& index) {
    Index other = index;
    bool is_largest = true;
    for (other[axis] = 0; other[axis] < x.extents[axis]; ++other[axis]) {
      const double a = x.at(other), b = x.at(index);
      if (a > b || (a == b && other[axis] < index[axis])) is_largest = false;
    }
    result.at(index) = is_largest;
  });
  return {Reference(std::move(result), Rule::exact())};
}

// --- Operations on bits ---

void require_integers(const Array& x) {
  require(!is_float(x.dtype) && x.dtype != BP_DTYPE_BOOL, "the operator is for integers");
  require_known(x.dtype != BP_DTYPE_UINT64, "the oracle does not support UINT64");
  for (const double value : x.values)
    require_known(std::fabs(value) < 0x1p53, "the oracle supports integers of at most 53 bits");
}
// Returns `bits` as a value of the type of `like`.
double wrapped(const Array& like, int64_t bits) {
  switch (like.dtype) {
    case BP_DTYPE_UINT8:
      return static_cast<uint8_t>(bits);
    case BP_DTYPE_INT8:
      return static_cast<int8_t>(bits);
    case BP_DTYPE_UINT16:
      return static_cast<uint16_t>(bits);
    case BP_DTYPE_INT16:
      return static_cast<int16_t>(bits);
    case BP_DTYPE_UINT32:
      return static_cast<uint32_t>(bits);
    case BP_DTYPE_INT32:
      return static_cast<int32_t>(bits);
    default: {
      const uint64_t magnitude = bits < 0 ? 0 - static_cast<uint64_t>(bits) : static_cast<uint64_t>(bits);
      require_known(magnitude == 0 || static_cast<int>(std::bit_width(magnitude)) - std::countr_zero(magnitude) <= 53,
                    "the oracle supports results of at most 53 significant bits");
      return static_cast<double>(bits);
    }
  }
}

using Bits = int64_t (*)(int64_t a, int64_t b);
template <Bits kBits>
References bitwise(const Call& call) {
  const Array &a = call.in(0), &b = call.in(1);
  require_integers(a);
  require_integers(b);
  require(a.dtype == b.dtype, "the inputs have different types");
  Array result(a.dtype, broadcast(a.extents, b.extents));
  for_each_index(result.extents, [&](const Index& index) {
    result.at(index) = wrapped(result, kBits(whole(a.broadcast_at(index)), whole(b.broadcast_at(index))));
  });
  return {Reference(std::move(result), Rule::exact())};
}
int64_t bit_and(int64_t a, int64_t b) {
  return a & b;
}
int64_t bit_or(int64_t a, int64_t b) {
  return a | b;
}
int64_t bit_xor(int64_t a, int64_t b) {
  return a ^ b;
}
// Operands have 64 bits here, so that a shift by the number of bits of a shorter type, or more, leaves 0, or -1
// for a negative number that is shifted right.
int64_t shift_left(int64_t a, int64_t b) {
  return b >= 0 && b < 64 ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : 0;
}
int64_t shift_right(int64_t a, int64_t b) {
  return b >= 0 && b < 64 ? a >> b : a < 0 ? -1 : 0;
}
References bit_shift(const Call& call) {
  require(call.text("direction") == "LEFT" || call.text("direction") == "RIGHT",
          "the direction is neither LEFT nor RIGHT");
  return call.text("direction") == "LEFT" ? bitwise<shift_left>(call) : bitwise<shift_right>(call);
}
References bitwise_not(const Call& call) {
  Array result = call.in(0);
  require_integers(result);
  for (double& x : result.values) x = wrapped(result, ~whole(x));
  return {Reference(std::move(result), Rule::exact())};
}

References bit_cast(const Call& call) {
  const int64_t to = call.integer("to");
  const bp_dtype_t from = call.in(0).dtype;
  require_known((from == BP_DTYPE_FLOAT && to == BP_DTYPE_INT32) || (from == BP_DTYPE_INT32 && to == BP_DTYPE_FLOAT),
                "the oracle reinterprets only FLOAT as INT32 and INT32 as FLOAT");
  onnx::Tensor bits = to_tensor(call.in(0));
  bits.dtype = static_cast<bp_dtype_t>(to);
  return {Reference(to_array(bits), Rule::bits())};
}

const Operator kOperators[] = {
    {"Acos", {7, 22}, smooth<acos_of>},
    {"Acosh", {9, 22}, smooth<acosh_of>},
    {"Asin", {7, 22}, smooth<asin_of>},
    {"Asinh", {9, 22}, smooth<asinh_of>},
    {"Atan", {7, 22}, smooth<atan_of>},
    {"Atanh", {9, 22}, smooth<atanh_of>},
    {"Cosh", {9, 22}, smooth<cosh_of>},
    {"Sinh", {9, 22}, smooth<sinh_of>},
    {"Tan", {7, 22}, smooth<tan_of>},
    {"Celu", {12, 28}, smooth<celu>},
    {"Swish", {24}, smooth<swish>},
    {"SwiGLU", {28}, swiglu},
    {"ThresholdedRelu", {10, 22}, thresholded_relu},
    {"Shrink", {9}, shrink},
    {"IsInf", {10, 20}, is_inf},
    {"Hardmax", {13}, hardmax},
    {"BitwiseAnd", {18}, bitwise<bit_and>},
    {"BitwiseOr", {18}, bitwise<bit_or>},
    {"BitwiseXor", {18}, bitwise<bit_xor>},
    {"BitwiseNot", {18}, bitwise_not},
    {"BitShift", {11, 28}, bit_shift},
    {"BitCast", {26}, bit_cast},
};

}  // namespace

std::span<const Operator> functions_operators() {
  return kOperators;
}

}  // namespace backplane::conform
