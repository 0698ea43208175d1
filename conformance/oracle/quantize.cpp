// SPDX-License-Identifier: Apache-2.0
// Quantisation, and products of quantised numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/window.h"

namespace backplane::conform {
namespace {

struct Range {
  double low, high;
};
Range range_of(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_INT8:
      return {-128, 127};
    case BP_DTYPE_UINT16:
      return {0, 65535};
    case BP_DTYPE_INT16:
      return {-32768, 32767};
    default:
      return {0, 255};
  }
}

// Of a scale or zero point: one for everything, one for each entry of `axis`, or one for each block along it.
double parameter(const Array& array, const Index& index, size_t axis, int64_t block) {
  if (array.count() == 1) return array.values[0];
  if (array.rank() == 1) return array.values[static_cast<size_t>(index[axis])];
  Index at = index;
  at[axis] /= block;
  return array.at(at);
}

// Irrelevant where there is one for everything.
size_t parameter_axis(const Call& call) {
  const int64_t rank = call.in(0).rank();
  return call.in(1).count() == 1 ? 0 : static_cast<size_t>(normal_axis(call.integer("axis", 1), rank));
}

// real / scale + zero point, to be rounded and limited. The device rounds the quotient once or twice before that; a
// number so near the middle between two integers may go either way.
References quantize_linear(const Call& call) {
  const Array &x = call.in(0), &scale = call.in(1);
  const size_t axis = parameter_axis(call);
  const auto wanted = static_cast<bp_dtype_t>(call.integer("output_dtype"));
  const bp_dtype_t dtype = wanted != BP_DTYPE_UNDEFINED ? wanted : call.has(2) ? call.in(2).dtype : BP_DTYPE_UINT8;
  Reference result(Array(dtype, x.extents), Rule::of(Rule::kStep));
  for_each_index(x.extents, [&](const Index& index) {
    const int64_t block = call.integer("block_size");
    const double quotient = x.at(index) / parameter(scale, index, axis, block);
    const double zero = call.has(2) ? parameter(call.in(2), index, axis, block) : 0;
    const Range range = range_of(dtype);
    result.value.at(index) = std::clamp(quotient + zero, range.low, range.high);
    result.scale.push_back(4 * float_type(x.dtype).ulp(quotient));
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

// The range is stretched to hold 0. Every output follows from a quotient whose rounding may fall either way, and the
// zero point, where its own is near the middle, moves all of them by a step.
References dynamic_quantize_linear(const Call& call) {
  const Array& x = call.in(0);
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

// Row `i` of a matrix has its own zero point (or scale), or all share one.
double of_row(const Array* array, int64_t i, double otherwise) {
  if (array == nullptr) return otherwise;
  return array->count() == 1 ? array->values[0] : array->values[static_cast<size_t>(i)];
}

// Σ (a - zero of a)·(b - zero of b) over the last two axes; leading axes broadcast.
Array integer_product(const Array& a, const Array* zero_a, const Array& b, const Array* zero_b) {
  const auto m = a.extents[a.extents.size() - 2], k = a.extents.back(), n = b.extents.back();
  Extents shape = broadcast({a.extents.begin(), a.extents.end() - 2}, {b.extents.begin(), b.extents.end() - 2});
  const size_t batch = shape.size();
  shape.insert(shape.end(), {m, n});
  Array result(BP_DTYPE_INT32, shape);
  for_each_index(shape, [&](const Index& index) {
    const auto element = [&](const Array& array, int64_t i, int64_t j) {
      Index at(index.begin() + static_cast<int64_t>(batch + 2 - array.extents.size()), index.end());
      for (size_t axis = 0; axis + 2 < at.size(); ++axis) at[axis] = array.extents[axis] == 1 ? 0 : at[axis];
      at[at.size() - 2] = i;
      at[at.size() - 1] = j;
      return array.at(at);
    };
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      sum += (element(a, index[batch], i) - of_row(zero_a, index[batch], 0)) *
             (element(b, i, index[batch + 1]) - of_row(zero_b, index[batch + 1], 0));
    }
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

// What lies in the padding counts as 0 after its zero point is taken off. `zero_w`: one for each output channel, or
// one.
Array integer_conv(const Call& call, const Array& x, double zero_x, const Array& w, const Array* zero_w) {
  const Window window(call, x.extents, {w.extents.begin() + 2, w.extents.end()});
  const int64_t out_per_group = w.extents[0] / call.integer("group", 1);
  Extents taps = {w.extents.begin() + 1, w.extents.end()}, shape = {x.extents[0], w.extents[0]};
  shape.insert(shape.end(), window.out.begin(), window.out.end());
  Array result(BP_DTYPE_INT32, shape);
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
  const double zero = call.has(2) ? call.in(2).values[0] : 0;
  return {Reference(integer_conv(call, call.in(0), zero, call.in(1), optional(call, 3)), Rule::exact())};
}

// Each sum times a factor, rounded to a type: within one step, because devices multiply by whole numbers and shifts.
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
  const double y_scale = call.in(6).values[0];
  return {requantized(sums, call.in(7).dtype, call.in(7).values[0], [&](const Index& index) {
    return of_row(&call.in(1), index[index.size() - 2], 1) * of_row(&call.in(4), index.back(), 1) / y_scale;
  })};
}

References qlinear_conv(const Call& call) {
  Array sums = integer_conv(call, call.in(0), call.in(2).values[0], call.in(3), &call.in(5));
  if (call.has(8)) {
    for_each_index(sums.extents, [&](const Index& index) { sums.at(index) += call.in(8).at({index[1]}); });
  }
  const double in_scale = call.in(1).values[0], out_scale = call.in(6).values[0];
  return {requantized(sums, call.in(7).dtype, call.in(7).values[0],
                      [&](const Index& index) { return in_scale * of_row(&call.in(4), index[1], 1) / out_scale; })};
}

const Operator kOperators[] = {
    {"QuantizeLinear", {23, 24, 25}, quantize_linear},
    {"DequantizeLinear", {23, 24, 25}, dequantize_linear},
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
