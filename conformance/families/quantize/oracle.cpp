// SPDX-License-Identifier: Apache-2.0
// Oracles of quantization and of products of quantized values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "judge/window.h"

namespace backplane::conform {
namespace {

struct Range {
  double low, high;
};
Range range_of(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_UINT8:
      return {0, 255};
    case BP_DTYPE_INT8:
      return {-128, 127};
    case BP_DTYPE_UINT16:
      return {0, 65535};
    case BP_DTYPE_INT16:
      return {-32768, 32767};
    default:
      throw std::invalid_argument("the oracle quantizes only to integers of 8 and 16 bits");
  }
}

// Returns the scale or zero point of an element. `array` has one value for all elements, one for each index along
// `axis`, or one for each block of `block` elements along `axis`.
double parameter(const Array& array, const Index& index, size_t axis, int64_t block) {
  if (array.count() == 1) return array.values[0];
  if (array.rank() == 1) return array.at({index.at(axis)});
  Index at = index;
  at[axis] /= block;
  return array.at(at);
}

// Returns the axis of the scale, or 0 if there is a single scale. Throws if the zero point does not have the shape of
// the scale.
size_t parameter_axis(const Call& call) {
  const Array &x = call.in(0), &scale = call.in(1);
  require(!call.has(2) || call.in(2).extents == scale.extents, "scale and zero point have different shapes");
  require(is_float(scale.dtype), "the scale is not floating-point");
  if (scale.count() == 1) return 0;
  require(scale.rank() == 1 || (scale.rank() == x.rank() && call.integer("block_size") > 0),
          "the scale fits neither an axis nor blocks");
  return static_cast<size_t>(normal_axis(call.integer("axis", 1), x.rank()));
}

// Computes x / scale + zero point, clamped but not rounded. A device rounds the quotient once or twice before it rounds
// to an integer, so a number near the midpoint of two integers may be rounded either way.
References quantize_linear(const Call& call) {
  const Array &x = call.in(0), &scale = call.in(1);
  const size_t axis = parameter_axis(call);
  require(call.integer("output_dtype") >= 0 && call.integer("output_dtype") <= BP_DTYPE_INT2, "the type is not known");
  const auto wanted = static_cast<bp_dtype_t>(call.integer("output_dtype"));
  const bp_dtype_t dtype = wanted != BP_DTYPE_UNDEFINED ? wanted : call.has(2) ? call.in(2).dtype : BP_DTYPE_UINT8;
  Reference result(Array(dtype, x.extents), Rule::of(Rule::kStep));
  for_each_index(x.extents, [&](const Index& index) {
    const int64_t block = call.integer("block_size");
    const double quotient = x.at(index) / parameter(scale, index, axis, block);
    const double zero = call.has(2) ? parameter(call.in(2), index, axis, block) : 0;
    const Range range = range_of(dtype);
    const auto kept = [&](double number) { return std::clamp(number + zero, range.low, range.high); };
    const double slack = 4 * float_type(x.dtype).ulp(quotient), value = kept(quotient);
    result.value.at(index) = value;
    // Beyond the range an error of the quotient changes nothing.
    result.scale.push_back(std::max(value - kept(quotient - slack), kept(quotient + slack) - value));
  });
  return {result};
}

References dequantize_linear(const Call& call) {
  const Array &x = call.in(0), &scale = call.in(1);
  const size_t axis = parameter_axis(call);
  const int64_t block = call.integer("block_size");
  Array result(scale.dtype, x.extents);
  for_each_index(x.extents, [&](const Index& index) {
    const double zero = call.has(2) ? parameter(call.in(2), index, axis, block) : 0;
    result.at(index) = (x.at(index) - zero) * parameter(scale, index, axis, block);
  });
  return {Reference(std::move(result), Rule::within(0.5))};
}

// The range of the input is extended to contain 0. A quotient near a midpoint may be rounded either way. If this
// happens to the zero point, all outputs may differ by one step.
References dynamic_quantize_linear(const Call& call) {
  const Array& x = call.in(0);
  require(x.dtype == BP_DTYPE_FLOAT, "the input is not FLOAT");
  double low = 0, high = 0;
  for (const double value : x.values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Reference y(Array(BP_DTYPE_UINT8, x.extents), Rule::of(Rule::kStep)),
      scale(Array(BP_DTYPE_FLOAT, {}), Rule::within(3)), zero(Array(BP_DTYPE_UINT8, {}), Rule::of(Rule::kStep));
  const double step = (high - low) / 255, at = step == 0 ? 0 : -low / step, slack = 1e-5 * at;
  scale.value.values[0] = step;
  zero.value.values[0] = at;
  zero.scale = {slack};
  const double rounded = std::nearbyint(at), unsure = 0.5 - std::fabs(at - rounded) <= slack ? 1 : 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double quotient = step == 0 ? 0 : x.values[i] / step;
    y.value.values[i] = std::clamp(quotient + rounded, 0.0, 255.0);
    y.scale.push_back(1e-5 * std::fabs(quotient) + unsure);
  }
  return {y, scale, zero};
}

// The zero point or scale of row or column `i`: its own, or one that all of them share. Returns `otherwise` if there is
// no array.
double of_row(const Array* array, int64_t i, double otherwise) {
  if (array == nullptr) return otherwise;
  if (array->count() == 1) return array->values[0];
  require(i < array->count(), "there is not one scale or zero point for each row or column");
  return array->values[static_cast<size_t>(i)];
}

// Σ (a - zero point of a)·(b - zero point of b) over the last two axes. Leading axes broadcast.
Array integer_product(const Array& a, const Array* zero_a, const Array& b, const Array* zero_b) {
  require(a.rank() >= 2 && b.rank() >= 2, "a factor has a rank below 2");
  require(!is_float(a.dtype) && !is_float(b.dtype), "a factor is not of integers");
  const auto m = a.extents[a.extents.size() - 2], k = a.extents.back(), n = b.extents.back();
  require(b.extents[b.extents.size() - 2] == k, "the factors' inner extents differ");
  Extents shape = broadcast({a.extents.begin(), a.extents.end() - 2}, {b.extents.begin(), b.extents.end() - 2});
  const size_t batch = shape.size();
  shape.insert(shape.end(), {m, n});
  Array result(BP_DTYPE_INT32, shape);
  require_steps(static_cast<double>(result.count()) * static_cast<double>(k));
  for_each_index(shape, [&](const Index& index) {
    const size_t row = matrix_start(a, index) + static_cast<size_t>(index[batch] * k);
    const size_t column = matrix_start(b, index) + static_cast<size_t>(index[batch + 1]);
    const double taken_a = of_row(zero_a, index[batch], 0), taken_b = of_row(zero_b, index[batch + 1], 0);
    double sum = 0;
    for (size_t i = 0; i < static_cast<size_t>(k); ++i)
      sum += (a.values[row + i] - taken_a) * (b.values[column + i * static_cast<size_t>(n)] - taken_b);
    result.at(index) = sum;
  });
  return result;
}

const Array* optional(const Call& call, size_t i) {
  return call.has(i) ? &call.in(i) : nullptr;
}

References matmul_integer(const Call& call) {
  return {Reference(integer_product(call.in(0), optional(call, 2), call.in(1), optional(call, 3)), Rule::exact())};
}

// Padded elements count as 0 after the zero point is subtracted. `zero_w` has one value for each output channel or one
// for all.
Array integer_conv(const Call& call, const Array& x, double zero_x, const Array& w, const Array* zero_w) {
  require(x.rank() > 2 && w.rank() == x.rank(), "input and weights are not images of the same rank");
  require(!is_float(x.dtype) && !is_float(w.dtype), "input or weights are not integers");
  const Window window(call, x.extents, {w.extents.begin() + 2, w.extents.end()});
  require(window.kernel == Extents(w.extents.begin() + 2, w.extents.end()),
          "kernel_shape differs from the shape of the weights");
  const int64_t group = call.integer("group", 1);
  require(group >= 1 && w.extents[0] % group == 0, "group is not a positive divisor of the number of output channels");
  require(x.extents[1] == w.extents[1] * group, "the weights are for another number of channels");
  const int64_t out_per_group = w.extents[0] / group;
  Extents taps = {w.extents.begin() + 1, w.extents.end()}, shape = {x.extents[0], w.extents[0]};
  shape.insert(shape.end(), window.out.begin(), window.out.end());
  Array result(BP_DTYPE_INT32, shape);
  require_steps(static_cast<double>(result.count()) * static_cast<double>(count_of(taps)));
  for_each_index(shape, [&](const Index& index) {
    double sum = 0;
    for_each_index(taps, [&](const Index& tap) {
      Index from = {index[0], index[1] / out_per_group * w.extents[1] + tap[0]}, weight = {index[1], tap[0]};
      for (size_t i = 0; i < window.in.size(); ++i) {
        from.push_back(window.source(i, index[i + 2], tap[i + 1]));
        if (from.back() < 0) return;
        weight.push_back(tap[i + 1]);
      }
      sum += (x.at(from) - zero_x) * (w.at(weight) - of_row(zero_w, index[1], 0));
    });
    result.at(index) = sum;
  });
  return result;
}

References conv_integer(const Call& call) {
  const double zero = call.has(2) ? call.single(2) : 0;
  return {Reference(integer_conv(call, call.in(0), zero, call.in(1), optional(call, 3)), Rule::exact())};
}

// Multiplies each sum by its factor and adds the zero point. Results may differ by one step, because devices multiply
// by integers and shift.
template <class F>
Reference requantized(const Array& sums, bp_dtype_t dtype, double zero, F factor) {
  Reference result(Array(dtype, sums.extents), Rule::of(Rule::kStep));
  const Range range = range_of(dtype);
  for_each_index(sums.extents, [&](const Index& index) {
    result.value.at(index) = std::clamp(sums.at(index) * factor(index) + zero, range.low, range.high);
  });
  result.scale.assign(sums.values.size(), 1.0);
  return result;
}

References qlinear_matmul(const Call& call) {
  const Array sums = integer_product(call.in(0), &call.in(2), call.in(3), &call.in(5));
  const double y_scale = call.single(6);
  return {requantized(sums, call.in(7).dtype, call.single(7), [&](const Index& index) {
    return of_row(&call.in(1), index[index.size() - 2], 1) * of_row(&call.in(4), index.back(), 1) / y_scale;
  })};
}

References qlinear_conv(const Call& call) {
  Array sums = integer_conv(call, call.in(0), call.single(2), call.in(3), &call.in(5));
  if (call.has(8)) {
    for_each_index(sums.extents, [&](const Index& index) { sums.at(index) += call.in(8).at({index[1]}); });
  }
  const double in_scale = call.single(1), out_scale = call.single(6);
  return {requantized(sums, call.in(7).dtype, call.single(7),
                      [&](const Index& index) { return in_scale * of_row(&call.in(4), index[1], 1) / out_scale; })};
}

const Operator kOperators[] = {
    {"QuantizeLinear", {23, 24, 25, 28}, quantize_linear},
    {"DequantizeLinear", {23, 24, 25, 28}, dequantize_linear},
    {"DynamicQuantizeLinear", {11}, dynamic_quantize_linear},
    {"MatMulInteger", {10}, matmul_integer},
    {"ConvInteger", {10}, conv_integer},
    {"QLinearMatMul", {21}, qlinear_matmul},
    {"QLinearConv", {10}, qlinear_conv},
};

}  // namespace

std::span<const Operator> quantize_operators() {
  return kOperators;
}

}  // namespace backplane::conform
