// SPDX-License-Identifier: Apache-2.0
// Quantized operators: QuantizeLinear and DequantizeLinear as formulas; products and convolutions of 8-bit integers in
// int32, after subtracting the zero points.
#include "ops/conv.h"
#include "ops/gemm.h"
#include "ops/rows.h"
#include "ops/table.h"
#include "ops/window.h"

namespace backplane::gpu {
namespace {

constexpr bp_dtype_set_t kBytes8 = one(BP_DTYPE_INT8) | one(BP_DTYPE_UINT8);
constexpr bp_dtype_set_t kQuantized = kBytes8 | one(BP_DTYPE_INT16) | one(BP_DTYPE_UINT16);

// A formula that rounds the float `value` to the nearest integer, ties to even, adds `zero` unless that is empty, and
// saturates to `dtype`.
std::string to_quantized(bp_dtype_t dtype, const std::string& value, const std::string& zero) {
  const char* name = dtype == BP_DTYPE_INT8    ? "char"
                     : dtype == BP_DTYPE_UINT8 ? "uchar"
                     : dtype == BP_DTYPE_INT16 ? "short"
                                               : "ushort";
  return "convert_" + std::string(name) + "_sat(rint(" + value + ")" + (zero.empty() ? "" : " + (float)" + zero) + ")";
}

// ---- QuantizeLinear, DequantizeLinear ------------------------------------------------------------------------------

// The strides of the scales along the input's shape: one scale for all elements, or for each index of the axis.
std::vector<int64_t> scale_strides(const Emit& e, const Shape& x, const Shape& scale) {
  std::vector<int64_t> strides(x.size());
  if (elements(scale) == 1) return strides;
  const size_t axis = axis_of(e.node.int_attribute("axis", 1), x.size());
  if (scale != Shape{x[axis]})
    throw sdk::Error(BP_TYPE_MISMATCH, "the scales have shape " + to_string(scale) + "; an input of shape " +
                                           to_string(x) + " requires one scale, or " + std::to_string(x[axis]) +
                                           " along axis " + std::to_string(axis));
  strides[axis] = 1;
  return strides;
}

// Sets output 0 to a formula of the input ($0), the scales ($1) and the zero points ($2), which may be empty, with a
// scale for each block of the axis. The last block may be shorter: it is computed by a kernel of its own.
void emit_blocks(Emit& e, const std::string& code, int64_t block, const Tensor& scale, const Tensor& zero) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", 1), x.rank());
  const int64_t n = x.shape[axis], whole = n / block;
  Shape expected = x.shape;
  expected[axis] = whole + (n % block != 0 ? 1 : 0);
  if (scale.shape != expected)
    throw sdk::Error(BP_TYPE_MISMATCH, "the scales have shape " + to_string(scale.shape) + "; an input of shape " +
                                           to_string(x.shape) + " in blocks of " + std::to_string(block) +
                                           " requires " + to_string(expected));
  const Tensor y = e.output(0, x.shape);
  // Computes `count` blocks of `length` elements, beginning with block `first`, as [.., count, length, ..].
  const auto compute = [&](int64_t first, int64_t count, int64_t length) {
    if (count == 0 || length == 0) return;
    const auto split = [&](std::vector<int64_t> all, int64_t outer, int64_t inner) {
      all[axis] = outer;
      all.insert(all.begin() + static_cast<ptrdiff_t>(axis) + 1, inner);
      return all;
    };
    const std::vector<int64_t> own = dense_strides(x.shape), of_scales = dense_strides(expected);
    const std::vector<int64_t> strides = split(own, own[axis] * length, own[axis]);
    const std::vector<int64_t> steps = split(of_scales, of_scales[axis], 0);
    const int64_t begin = first * block * own[axis], first_scale = first * of_scales[axis];
    std::vector<View> views{{x, strides, begin}, {scale, steps, first_scale}};
    if (zero) views.push_back({zero, steps, first_scale});
    e.compute(code, split(x.shape, count, length), views, {y, strides, begin});
  };
  compute(0, whole, block);
  compute(whole, 1, n % block);
}

void emit_linear(Emit& e, std::string_view direction) {
  const Tensor scale = e.input(1), zero = e.input(2);
  const Shape shape = e.shape(0);
  const bp_dtype_t dtype = e.node.output(0).dtype();
  if (zero && zero.shape != scale.shape && (zero.count() != 1 || scale.count() != 1))
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "zero points have extents " + to_string(zero.shape) + " but scales " + to_string(scale.shape));
  std::string code = direction == "to" ? to_quantized(dtype, "(float)$0 / (float)$1", zero ? "$2" : "")
                     : zero            ? "(float)((int)$0 - (int)$2) * $1"
                                       : "(float)$0 * $1";
  if (const int64_t block = e.node.int_attribute("block_size", 0); block != 0)
    return emit_blocks(e, code, block, scale, zero);
  const std::vector<int64_t> strides = scale_strides(e, shape, scale.shape);
  std::vector<Operand> operands{Operand(0), View{scale, strides, 0}};
  if (zero) operands.push_back(View{zero, strides, 0});
  e.formula(std::move(code), dtype, shape, operands);
}

Verdict supports_quantize(const Node& node) {
  return expect(node)
      .output_dtype(0, kQuantized)
      .input_dtype(2, one(node.output(0).dtype()))
      .input_dtype(1, one(BP_DTYPE_FLOAT))
      .integer("precision", 0, BP_DTYPE_FLOAT)
      .integer("block_size", 0, INT64_MAX);
}

Verdict supports_dequantize(const Node& node) {
  return expect(node)
      .input_dtype(1, kFloats & ~one(BP_DTYPE_DOUBLE))
      .output_dtype(0, one(node.input(1).dtype()))
      .same_dtype(0, 2)
      .integer("block_size", 0, INT64_MAX);
}

void emit_dynamic(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const Tensor scale = e.has_output(1) ? e.output(1, {}) : e.scratch(BP_DTYPE_FLOAT, {});
  const Tensor zero = e.has_output(2) ? e.output(2, {}) : e.scratch(BP_DTYPE_UINT8, {});
  const Rows rows = rows_of(e.caps(), {1, x.count()}, 1, 2);
  LaunchBuilder launch = e.launch("dynamic_range", "dynamic_range", rows.macros());
  launch.in(x).out(scale).out(zero).arg(x.count());
  rows.range(launch);
  const std::vector<int64_t> still(x.rank());
  e.formula(to_quantized(BP_DTYPE_UINT8, "$0 / $1", "$2"), BP_DTYPE_UINT8, x.shape,
            {Operand(0), View{scale, still, 0}, View{zero, still, 0}});
}

Verdict supports_dynamic(const Node& node) {
  return expect(node).output_dtype(0, one(BP_DTYPE_UINT8));
}

// ---- products and convolutions -------------------------------------------------------------------------------------

// A view of x along `shape`; x is a single number, a vector along `dimension`, or a tensor that broadcasts.
View along(const Tensor& x, const Shape& shape, size_t dimension) {
  View view{x, std::vector<int64_t>(shape.size()), 0};
  if (x.count() == 1) return view;
  if (x.rank() != 1) return broadcast_view(x, shape);
  if (dimension >= shape.size() || x.shape[0] != shape[dimension])
    throw sdk::Error(BP_TYPE_MISMATCH, "a scale or zero point of shape " + to_string(x.shape) +
                                           " does not fit a tensor of shape " + to_string(shape));
  view.strides[dimension] = 1;
  return view;
}

// Converts to int32 and subtracts the zero point; a vector of zero points is along `dimension`.
Tensor centred(Emit& e, const Tensor& x, const Tensor& zero, size_t dimension) {
  std::vector<View> views{{x, dense_strides(x.shape), 0}};
  if (zero) views.push_back(along(zero, x.shape, dimension));
  return e.computed(zero ? "(int)$0 - (int)$1" : "(int)$0", BP_DTYPE_INT32, x.shape, views);
}

// The input slots of operand b and of the zero points. In MatMulInteger and ConvInteger, zero points are optional.
struct Slots {
  uint32_t b, a_zero, b_zero;
};
constexpr Slots kIntegerSlots{1, 2, 3}, kLinearSlots{3, 2, 5};

size_t before_last(const Tensor& x) {
  return x.rank() < 2 ? 0 : x.rank() - 2;
}

Tensor matrix_sums(Emit& e, const Slots& slots, Shape& out_shape) {
  const Tensor a = e.input(0), b = e.input(slots.b);
  Product p = matrix_product(e, centred(e, a, e.input(slots.a_zero), before_last(a)),
                             centred(e, b, e.input(slots.b_zero), b.rank() - 1), out_shape);
  p.y = e.scratch(BP_DTYPE_INT32, out_shape);
  emit_product(e, p);
  return p.y;
}

// Sets output 0 to sums · a_scale · b_scale / y_scale, quantized. If a_scale or b_scale is a vector, it is along the
// given dimension.
void emit_requantize(Emit& e, const Tensor& sums, size_t a_dimension, size_t b_dimension) {
  const Shape& shape = sums.shape;
  const bp_dtype_t dtype = e.node.output(0).dtype();
  e.formula(to_quantized(dtype, "(float)$0 * ($1 * $2 / $3)", "$4"), dtype, shape,
            {View{sums, dense_strides(shape), 0}, along(e.input(1), shape, a_dimension),
             along(e.input(4), shape, b_dimension), along(e.input(6), shape, shape.size()),
             along(e.input(7), shape, shape.size())});
}

void emit_matmul_integer(Emit& e, std::string_view) {
  Shape shape;
  const Tensor sums = matrix_sums(e, kIntegerSlots, shape);
  e.alias(0, sums, shape);
}

void emit_qlinear_matmul(Emit& e, std::string_view) {
  Shape shape;
  const Tensor sums = matrix_sums(e, kLinearSlots, shape);
  emit_requantize(e, sums, shape.size() < 2 ? 0 : shape.size() - 2, shape.empty() ? 0 : shape.size() - 1);
}

Tensor conv_sums(Emit& e, const Slots& slots, const Tensor& bias) {
  const Tensor x = e.input(0), k = e.input(slots.b);
  return emit_integer_conv(e, centred(e, x, e.input(slots.a_zero), 1), centred(e, k, e.input(slots.b_zero), 0), bias);
}

void emit_conv_integer(Emit& e, std::string_view) {
  const Tensor sums = conv_sums(e, kIntegerSlots, {});
  e.alias(0, sums, sums.shape);
}

void emit_qlinear_conv(Emit& e, std::string_view) {
  emit_requantize(e, conv_sums(e, kLinearSlots, e.input(8)), 1, 1);
}

Verdict supports_integer(const Node& node, const Slots& slots) {
  return expect(node)
      .input_dtype(slots.b, kBytes8)
      .rank(0, 1)
      .same_dtype(0, slots.a_zero)
      .rank(slots.b, 1)
      .same_dtype(slots.b, slots.b_zero);
}

Verdict supports_matmul_integer(const Node& node) {
  if (node.output(0).dtype() != BP_DTYPE_INT32) return sdk::no(BP_REASON_DTYPE, "its output is not int32");
  return supports_integer(node, kIntegerSlots);
}

Verdict supports_scales(const Node& node) {
  constexpr bp_dtype_set_t kScale = one(BP_DTYPE_FLOAT);
  Verdict v = expect(node)
                  .input_dtype(1, kScale)
                  .input_dtype(4, kScale)
                  .input_dtype(6, kScale)
                  .output_dtype(0, kBytes8)
                  .input_dtype(7, one(node.output(0).dtype()));
  return accepted(v) ? supports_integer(node, kLinearSlots) : v;
}

Verdict supports_conv_shape(const Node& node, uint32_t weights) {
  const int32_t rank = node.input(0).rank();
  return expect(node).rank(weights, rank, rank).also(supports_window);
}

Verdict supports_conv_integer(const Node& node) {
  if (Verdict v = supports_matmul_integer(node); !accepted(v)) return v;
  return supports_conv_shape(node, 1);
}

Verdict supports_qlinear_conv(const Node& node) {
  if (Verdict v = expect(node).input_dtype(8, one(BP_DTYPE_INT32)).also(supports_scales); !accepted(v)) return v;
  return supports_conv_shape(node, 3);
}

}  // namespace

std::span<const Row> quantize_rows() {
  static constexpr Row kRows[] = {
      {"",
       "QuantizeLinear",
       10,
       one(BP_DTYPE_FLOAT) | one(BP_DTYPE_INT32),
       {2, 3, Form::kOpen},
       supports_quantize,
       emit_linear,
       "to"},
      {"",
       "DequantizeLinear",
       10,
       kQuantized | one(BP_DTYPE_INT32),
       {2, 3, Form::kOpen},
       supports_dequantize,
       emit_linear,
       "from"},
      {"", "DynamicQuantizeLinear", 11, one(BP_DTYPE_FLOAT), {1, 1, Form::kOpen, 3}, supports_dynamic, emit_dynamic},
      {"", "MatMulInteger", 10, kBytes8, {2, 4, Form::kOpen}, supports_matmul_integer, emit_matmul_integer},
      {"", "ConvInteger", 10, kBytes8, {2, 4, Form::kOpen}, supports_conv_integer, emit_conv_integer},
      {"", "QLinearMatMul", 10, kBytes8, {8, 8, Form::kOpen}, supports_scales, emit_qlinear_matmul},
      {"", "QLinearConv", 10, kBytes8, {8, 9, Form::kOpen}, supports_qlinear_conv, emit_qlinear_conv},
  };
  return kRows;
}

}  // namespace backplane::gpu
