// SPDX-License-Identifier: Apache-2.0
// Operators that are formulas: each output element depends on the input elements at its position. $0, $1 are the
// inputs, $T is the arithmetic type. Formulas are scalar expressions in the kernels' language; a chain of them becomes
// one kernel.
#include <cctype>

#include "ops/host_values.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

constexpr bp_dtype_set_t kSignedNumbers = kFloats | kSignedIntegers;

// Replaces each @name in `formula` by the value of the float attribute of that name.
std::string with_attributes(const Node& node, std::string_view formula) {
  std::string code;
  for (size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] != '@') {
      code += formula[i];
      continue;
    }
    const size_t begin = i + 1;
    while (i + 1 < formula.size() &&
           (std::isalnum(static_cast<unsigned char>(formula[i + 1])) || formula[i + 1] == '_'))
      ++i;
    code += literal(node.float_attribute(formula.substr(begin, i + 1 - begin), 0));
  }
  return code;
}

void emit_formula(Emit& e, std::string_view formula) {
  e.elementwise(with_attributes(e.node, formula));
}

// Unlike the other operators of two inputs, SwiGLU does not broadcast.
void emit_swiglu(Emit& e, std::string_view formula) {
  if (e.shape(0) != e.shape(1))
    throw sdk::Error(BP_INVALID_ARGUMENT, "the inputs have shapes " + to_string(e.shape(0)) + " and " +
                                              to_string(e.shape(1)) + "; they must be equal");
  emit_formula(e, formula);
}

void emit_comparison(Emit& e, std::string_view formula) {
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < e.node.input_count(); ++i) slots.push_back(i);
  e.elementwise(std::string(formula), BP_DTYPE_BOOL, slots);
}

// Combines the inputs, at most kMaxLeaves, from left to right; `formula` combines two.
void emit_variadic(Emit& e, std::string_view formula) {
  std::string code = "$0";
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < e.node.input_count(); ++i) slots.push_back(i);
  for (uint32_t i = 1; i < e.node.input_count(); ++i) {
    std::string joined;
    for (size_t k = 0; k < formula.size(); ++k) {
      if (formula[k] != '$' || formula[k + 1] == 'T') {
        joined += formula[k];
      } else {
        joined += formula[++k] == '0' ? "(" + code + ")" : "$" + std::to_string(i);
      }
    }
    code = std::move(joined);
  }
  if (e.node.op_type() == "Mean") code = "(" + code + ") / " + std::to_string(e.node.input_count());
  e.elementwise(std::move(code), e.node.input(0).dtype(), slots);
}

Verdict supports_variadic(const Node& node) {
  // In a formula an operand's number has only one digit, and kernels have a limited number of buffers.
  if (node.input_count() > kMaxLeaves)
    return sdk::no(BP_REASON_OTHER, "it has " + std::to_string(node.input_count()) + " inputs; at most " +
                                        std::to_string(kMaxLeaves) + " are supported");
  return same_types(node);
}

// NaN wins, as in ONNX.
constexpr std::string_view kFloatMin = "isnan($0) || $0 < $1 ? $0 : $1", kFloatMax = "isnan($0) || $0 > $1 ? $0 : $1";

void emit_min_max(Emit& e, std::string_view which) {
  const bool real = is_float(e.node.input(0).dtype());
  if (which == "min") return emit_variadic(e, real ? kFloatMin : "min($0, $1)");
  return emit_variadic(e, real ? kFloatMax : "max($0, $1)");
}

// Integer division by zero, or of the lowest value by -1, would crash the process on some devices.
void emit_div(Emit& e, std::string_view) {
  const bp_dtype_t dtype = e.node.input(0).dtype();
  if (is_float(dtype)) return e.elementwise("$0 / $1");
  if ((kSignedIntegers >> dtype & 1) != 0) return e.elementwise("$1 == 0 ? 0 : $1 == -1 ? 0 - $0 : $0 / $1");
  e.elementwise("$1 == 0 ? 0 : $0 / $1");
}

void emit_mod(Emit& e, std::string_view) {
  const bp_dtype_t dtype = e.node.input(0).dtype();
  if (is_float(dtype) && e.node.int_attribute("fmod", 0) != 0) return e.elementwise("fmod($0, $1)");
  if (is_float(dtype)) {
    const std::string rest = "fmod($0, $1)";
    return e.elementwise(rest + " == 0 ? copysign(" + rest + ", $1) : (" + rest + " < 0) != ($1 < 0) ? " + rest +
                         " + $1 : " + rest);
  }
  const std::string rest = "($1 == 0 || $1 == ($T)-1 ? ($T)0 : ($T)($0 % $1))";
  if ((kUnsignedIntegers >> dtype & 1) != 0) return e.elementwise("$1 == 0 ? 0 : $0 % $1");
  if (e.node.int_attribute("fmod", 0) != 0) return e.elementwise(rest);
  e.elementwise("(" + rest + " != 0 && (" + rest + " < 0) != ($1 < 0)) ? " + rest + " + $1 : " + rest);
}

void emit_pow(Emit& e, std::string_view) {
  const bp_dtype_t base = e.node.input(0).dtype();
  const std::optional<float> exponent = e.scalar(1);
  if (exponent == 2.0f) return e.elementwise("$0 * $0", base, {0, 1});
  // Unlike sqrt, Pow with exponent 0.5 maps -infinity to infinity, and -0 to 0.
  if (exponent == 0.5f) return e.elementwise("fabs(isinf($0) ? $0 : sqrt($0))", base, {0, 1});
  e.elementwise("pow($0, ($T)$1)", base, {0, 1});
}

Verdict supports_pow(const Node& node) {
  return expect(node).input_dtype(1, kNumbers);
}

void emit_bit_shift(Emit& e, std::string_view) {
  const bool left = e.node.text_attribute("direction", "") == "LEFT";
  e.elementwise(left ? "$1 >= sizeof($T) * 8 ? ($T)0 : ($T)($0 << $1)"
                     : "$1 >= sizeof($T) * 8 ? ($T)0 : ($T)($0 >> $1)");
}

void emit_where(Emit& e, std::string_view) {
  e.elementwise("$0 ? $1 : $2", e.node.input(1).dtype(), {0, 1, 2});
}

Verdict supports_where(const Node& node) {
  return expect(node).same_dtype(1, 2);
}

// The bounds have one element each, whatever their ranks.
void emit_clip(Emit& e, std::string_view) {
  const bool real = is_float(e.node.input(0).dtype());
  const Shape shape = e.shape(0);
  std::vector<Operand> operands{Operand(0)};
  std::string code = "$0";
  for (const uint32_t slot : {1u, 2u}) {
    if (!e.has_input(slot)) continue;
    const std::string limit = "$" + std::to_string(operands.size());
    const Tensor bound = e.input(slot);
    if (bound.count() != 1)
      throw sdk::Error(BP_TYPE_MISMATCH, "input " + std::to_string(slot) + ", a bound, has shape " +
                                             to_string(bound.shape) + "; it must have one element");
    operands.emplace_back(View{bound, std::vector<int64_t>(shape.size()), 0});
    if (real)
      code = "(" + code + (slot == 1 ? " < " : " > ") + limit + " ? " + limit + " : " + code + ")";
    else
      code = (slot == 1 ? "max(" : "min(") + code + ", " + limit + ")";
  }
  e.formula(std::move(code), e.node.input(0).dtype(), shape, operands);
}

void emit_is_inf(Emit& e, std::string_view) {
  const bool negative = e.node.int_attribute("detect_negative", 1) != 0;
  const bool positive = e.node.int_attribute("detect_positive", 1) != 0;
  const char* sign = negative && positive ? "1" : negative ? "$0 < 0" : positive ? "$0 > 0" : "0";
  e.elementwise(std::string("isinf($0) && ") + sign, BP_DTYPE_BOOL, {0});
}

// The formula of the error function. Except for double, it avoids the built-in erf, which many devices do not
// vectorize.
std::string erf_of(const Emit& e, const std::string& x) {
  return (e.node.input(0).dtype() == BP_DTYPE_DOUBLE ? "erf(" : "erf_f32(") + x + ")";
}

void emit_erf(Emit& e, std::string_view) {
  e.elementwise(erf_of(e, "$0"));
}

void emit_gelu(Emit& e, std::string_view) {
  if (e.node.text_attribute("approximate", "none") == "tanh") return e.elementwise(std::string(kTanhGeluFormula));
  e.elementwise("($T)0.5f * $0 * (1 + " + erf_of(e, "$0 * ($T)0.7071067811865476") + ")");
}

// The slope broadcasts to the input, never the reverse.
void emit_prelu(Emit& e, std::string_view) {
  e.formula("$0 < 0 ? $1 * $0 : $0", e.node.input(0).dtype(), e.shape(0), {Operand(0), Operand(1)});
}

Verdict supports_prelu(const Node& node) {
  if (node.input(1).rank() > node.input(0).rank())
    return sdk::no(BP_REASON_SHAPE, "the slope has a higher rank than the input");
  return same_types(node);
}

// The formula of a cast. For floats beyond an integer's range, ONNX leaves the result undefined; this formula saturates
// to the type, or, for types narrower than 32 bits, saturates to int32 and then wraps. A cast to a 16-bit float
// rounds even if the result is not stored, as a model may cast in order to round. Integers of 8 bits are exact in fp16
// and bf16.
std::string conversion(bp_dtype_t from, bp_dtype_t to) {
  if (to == BP_DTYPE_BOOL) return "$0 != 0";
  if (from != to && bytes_of(from) > 1 && to == BP_DTYPE_FLOAT16) return "rounded_f16((float)$0)";
  if (from != to && bytes_of(from) > 1 && to == BP_DTYPE_BFLOAT16) return "rounded_bf16((float)$0)";
  if (is_float(to) || !is_float(from)) return "$0";
  static constexpr struct {
    bp_dtype_t dtype;
    const char* name;
  } kNames[] = {{BP_DTYPE_INT8, "char"},     {BP_DTYPE_UINT8, "uchar"}, {BP_DTYPE_INT16, "short"},
                {BP_DTYPE_UINT16, "ushort"}, {BP_DTYPE_INT32, "int"},   {BP_DTYPE_UINT32, "uint"},
                {BP_DTYPE_INT64, "long"},    {BP_DTYPE_UINT64, "ulong"}};
  for (const auto& [dtype, name] : kNames) {
    if (dtype == to)
      return bytes_of(to) < 4 ? std::string("convert_") + name + "(convert_int_sat($0))"
                              : std::string("convert_") + name + "_sat($0)";
  }
  return "$0";
}

Verdict supports_cast(const Node& node) {
  if (node.int_attribute("to", -1) != node.output(0).dtype())
    return sdk::no(BP_REASON_ATTRIBUTE, "its output is " + std::string(view::dtype_name(node.output(0).dtype())) +
                                            ", but `to` names another type");
  return accept();
}

Verdict supports_cast_like(const Node& node) {
  if (node.input(1).dtype() != node.output(0).dtype())
    return sdk::no(BP_REASON_DTYPE, "its output is " + std::string(view::dtype_name(node.output(0).dtype())) +
                                        ", but input 1 is " + std::string(view::dtype_name(node.input(1).dtype())));
  return accept();
}

void emit_cast(Emit& e, std::string_view) {
  const bp_dtype_t from = e.node.input(0).dtype(), to = e.node.output(0).dtype();
  e.elementwise(conversion(from, to), to, {0});
}

}  // namespace

std::span<const Row> elementwise_rows() {
  static constexpr Row kRows[] = {
      {"", "Abs", 6, kSignedNumbers, kUnary, nullptr,
       [](Emit& e, std::string_view) { e.elementwise(is_float(e.node.input(0).dtype()) ? "fabs($0)" : "abs($0)"); }},
      {"", "Neg", 6, kSignedNumbers, kUnary, nullptr, emit_formula, "-$0"},
      {"", "Ceil", 6, kFloats, kUnary, nullptr, emit_formula, "ceil($0)"},
      {"", "Floor", 6, kFloats, kUnary, nullptr, emit_formula, "floor($0)"},
      {"", "Round", 11, kFloats, kUnary, nullptr, emit_formula, "rint($0)"},
      {"", "Sqrt", 6, kFloats, kUnary, nullptr, emit_formula, "sqrt($0)"},
      {"", "Reciprocal", 6, kFloats, kUnary, nullptr, emit_formula, "1 / $0"},
      {"", "Exp", 6, kFloats, kUnary, nullptr, emit_formula, "exp($0)"},
      {"", "Log", 6, kFloats, kUnary, nullptr, emit_formula, "log($0)"},
      {"", "Sin", 7, kFloats, kUnary, nullptr, emit_formula, "sin($0)"},
      {"", "Cos", 7, kFloats, kUnary, nullptr, emit_formula, "cos($0)"},
      {"", "Tan", 7, kFloats, kUnary, nullptr, emit_formula, "tan($0)"},
      {"", "Asin", 7, kFloats, kUnary, nullptr, emit_formula, "asin($0)"},
      {"", "Acos", 7, kFloats, kUnary, nullptr, emit_formula, "acos($0)"},
      {"", "Atan", 7, kFloats, kUnary, nullptr, emit_formula, "atan($0)"},
      {"", "Sinh", 9, kFloats, kUnary, nullptr, emit_formula, "sinh($0)"},
      {"", "Cosh", 9, kFloats, kUnary, nullptr, emit_formula, "cosh($0)"},
      {"", "Tanh", 6, kFloats, kUnary, nullptr, emit_formula, "tanh($0)"},
      {"", "Asinh", 9, kFloats, kUnary, nullptr, emit_formula, "asinh($0)"},
      {"", "Acosh", 9, kFloats, kUnary, nullptr, emit_formula, "acosh($0)"},
      {"", "Atanh", 9, kFloats, kUnary, nullptr, emit_formula, "atanh($0)"},
      {"", "Erf", 9, kFloats, kUnary, nullptr, emit_erf},
      {"", "Sign", 9, kNumbers, kUnary, nullptr, emit_formula, "$0 > 0 ? 1 : $0 < 0 ? -1 : $0"},
      {"", "Not", 1, kBooleans, kUnary, nullptr, emit_formula, "!$0"},
      {"", "BitwiseNot", 18, kIntegers, kUnary, nullptr, emit_formula, "~$0"},
      {"", "IsNaN", 9, kFloats, kUnaryTest, nullptr, emit_comparison, "isnan($0)"},
      {"", "IsInf", 10, kFloats, kUnaryTest, nullptr, emit_is_inf},

      // Activations.
      {"", "Relu", 6, kSignedNumbers, kUnary, nullptr, emit_formula, kReluFormula},
      {"", "LeakyRelu", 6, kFloats, kUnary, nullptr, emit_formula, "$0 < 0 ? @alpha * $0 : $0"},
      {"", "PRelu", 7, kSignedNumbers, kBinary, supports_prelu, emit_prelu},
      {"", "ThresholdedRelu", 10, kFloats, kUnary, nullptr, emit_formula, "$0 > @alpha ? $0 : 0"},
      {"", "Elu", 6, kFloats, kUnary, nullptr, emit_formula, "$0 < 0 ? @alpha * expm1($0) : $0"},
      {"", "Celu", 12, kFloats, kUnary, nullptr, emit_formula, "$0 < 0 ? @alpha * expm1($0 / @alpha) : $0"},
      {"", "Selu", 6, kFloats, kUnary, nullptr, emit_formula, "@gamma * ($0 < 0 ? @alpha * expm1($0) : $0)"},
      // exp(-$0) would overflow where the result is small but not 0.
      {"", "Sigmoid", 6, kFloats, kUnary, nullptr, emit_formula,
       "($0 < 0 ? exp(-fabs($0)) : 1) / (1 + exp(-fabs($0)))"},
      // OpenCL leaves clamp(NaN) undefined.
      {"", "HardSigmoid", 6, kFloats, kUnary, nullptr, emit_formula,
       "isnan($0) ? $0 : clamp(($T)(@alpha * $0 + @beta), ($T)0, ($T)1)"},
      {"", "HardSwish", 14, kFloats, kUnary, nullptr, emit_formula, "$0 * clamp($0 / 6 + ($T)0.5f, ($T)0, ($T)1)"},
      {"", "Softplus", 1, kFloats, kUnary, nullptr, emit_formula, "($0 > 0 ? $0 : 0) + log1p(exp(-fabs($0)))"},
      {"", "Softsign", 1, kFloats, kUnary, nullptr, emit_formula, "$0 / (1 + fabs($0))"},
      {"", "Mish", 18, kFloats, kUnary, nullptr, emit_formula, "$0 * tanh(($0 > 0 ? $0 : 0) + log1p(exp(-fabs($0))))"},
      {"", "Swish", 24, kFloats, kUnary, nullptr, emit_formula,
       "$0 * (@alpha * $0 < 0 ? exp(-fabs(@alpha * $0)) : 1) / (1 + exp(-fabs(@alpha * $0)))"},
      {"", "Gelu", 20, kFloats, kUnary, nullptr, emit_gelu},
      {"", "Shrink", 9, kFloats, kUnary, nullptr, emit_formula,
       "$0 < -@lambd ? $0 + @bias : $0 > @lambd ? $0 - @bias : 0"},
      {"", "Clip", 12, kNumbers, {1, 3}, same_types, emit_clip},

      // Two or more inputs, broadcast.
      Row{"", "Add", 7, kNumbers, kBinary, same_types, emit_formula, kSumFormula}.on_host({on_host::add}),
      Row{"", "Sub", 7, kNumbers, kBinary, same_types, emit_formula, "$0 - $1"}.on_host({on_host::sub}),
      Row{"", "Mul", 7, kNumbers, kBinary, same_types, emit_formula, "$0 * $1"}.on_host({on_host::mul}),
      Row{"", "Div", 7, kNumbers, kBinary, same_types, emit_div}.on_host(
          {on_host::div, false, on_host::divides_by_constants}),
      Row{"", "Mod", 10, kNumbers, kBinary, same_types, emit_mod}.on_host(
          {on_host::mod, false, on_host::divides_by_constants}),
      {"", "Pow", 12, kFloats, kBinary, supports_pow, emit_pow},
      Row{"", "Min", 8, kNumbers, kVariadic, supports_variadic, emit_min_max, "min"}.on_host({on_host::min}),
      Row{"", "Max", 8, kNumbers, kVariadic, supports_variadic, emit_min_max, "max"}.on_host({on_host::max}),
      {"", "Sum", 8, kFloats, kVariadic, supports_variadic, emit_variadic, "$0 + $1"},
      {"", "Mean", 8, kFloats, kVariadic, supports_variadic, emit_variadic, "$0 + $1"},
      {"", "And", 7, kBooleans, kBinary, same_types, emit_formula, "$0 && $1"},
      {"", "Or", 7, kBooleans, kBinary, same_types, emit_formula, "$0 || $1"},
      {"", "Xor", 7, kBooleans, kBinary, same_types, emit_formula, "$0 != $1"},
      {"", "BitwiseAnd", 18, kIntegers, kBinary, same_types, emit_formula, "$0 & $1"},
      {"", "BitwiseOr", 18, kIntegers, kBinary, same_types, emit_formula, "$0 | $1"},
      {"", "BitwiseXor", 18, kIntegers, kBinary, same_types, emit_formula, "$0 ^ $1"},
      {"", "SwiGLU", 28, kFloats, kBinary, same_types, emit_swiglu,
       "$0 * (@alpha * $0 < 0 ? exp(-fabs(@alpha * $0)) : 1) / (1 + exp(-fabs(@alpha * $0))) * $1"},
      {"", "BitShift", 11, kUnsignedIntegers, kBinary, same_types, emit_bit_shift},
      Row{"", "Equal", 7, kAnything, kBinaryTest, same_types, emit_comparison, "$0 == $1"}.on_host({on_host::equal}),
      {"", "Less", 7, kNumbers, kBinaryTest, same_types, emit_comparison, "$0 < $1"},
      {"", "LessOrEqual", 12, kNumbers, kBinaryTest, same_types, emit_comparison, "$0 <= $1"},
      {"", "Greater", 7, kNumbers, kBinaryTest, same_types, emit_comparison, "$0 > $1"},
      {"", "GreaterOrEqual", 12, kNumbers, kBinaryTest, same_types, emit_comparison, "$0 >= $1"},
      Row{"", "Where", 9, kBooleans, {3, 3, Form::kOpen}, supports_where, emit_where}.on_host({on_host::where}),

      Row{"", "Cast", 6, kAnything, {1, 1, Form::kOpen}, supports_cast, emit_cast}.on_host({on_host::cast}),
      {"", "CastLike", 15, kAnything, {2, 2, Form::kOpen}, supports_cast_like, emit_cast},
  };
  return kRows;
}

}  // namespace backplane::gpu
