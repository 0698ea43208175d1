// SPDX-License-Identifier: Apache-2.0
// Oracles of normalization, including softmax.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>

namespace backplane::conform {
namespace {

// Calls `visit` once for each slice along the axes from `first_axis` to `end_axis` - 1, with the flat indices of its
// elements.
template <class F>
void for_each_group(const Array& x, int64_t first_axis, int64_t end_axis, F visit) {
  int64_t outer = 1, size = 1, inner = 1;
  if (x.count() == 0) return;
  for (int64_t i = 0; i < x.rank(); ++i) {
    (i < first_axis ? outer : i < end_axis ? size : inner) *= x.extents[static_cast<size_t>(i)];
  }
  std::vector<size_t> group(static_cast<size_t>(size));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t s = 0; s < size; ++s)
        group[static_cast<size_t>(s)] = static_cast<size_t>((o * size + s) * inner + i);
      visit(group);
    }
  }
}

struct Moments {
  double mean = 0, variance = 0, magnitude = 0;  // `magnitude` is the mean of |x|
};
Moments moments(const Array& x, const std::vector<size_t>& group) {
  Moments m;
  const auto n = static_cast<double>(group.size());
  for (const size_t i : group) m.mean += x.values[i] / n;
  for (const size_t i : group) m.magnitude += std::fabs(x.values[i]) / n;
  for (const size_t i : group) m.variance += (x.values[i] - m.mean) * (x.values[i] - m.mean) / n;
  return m;
}

// y = (x - mean) / √(variance + ε) · scale + bias. The error scale sums the magnitudes of the intermediate results:
// x·factor, mean·factor, their difference, which carries the relative error of the variance, and the bias.
void put(Reference& result, size_t i, double x, const Moments& m, double epsilon, double scale, double bias) {
  const double factor = scale / std::sqrt(m.variance + epsilon), product = (x - m.mean) * factor;
  result.value.values[i] = product + bias;
  result.scale[i] = std::fabs(x * factor) + m.magnitude * std::fabs(factor) + std::fabs(product) + std::fabs(bias);
}

Reference prepared(const Array& x, double terms) {
  require(is_float(x.dtype), "the input is not floating-point");
  Reference result(Array(x.dtype, x.extents), Rule::smooth(terms));
  result.scale.resize(x.values.size());
  return result;
}

References batch_normalization(const Call& call) {
  const Array& x = call.in(0, 1);
  const int64_t channels = x.rank() > 1 ? x.extents[1] : 1;
  const std::vector<double>&scale = call.vector(1, channels), &bias = call.vector(2, channels),
        &means = call.vector(3, channels), &variances = call.vector(4, channels);
  Reference result = prepared(x, 1);
  size_t i = 0;
  for_each_index(x.extents, [&](const Index& index) {
    const auto c = static_cast<size_t>(index.size() > 1 ? index[1] : 0);
    put(result, i, x.values[i], {means[c], variances[c], std::fabs(means[c])}, call.real("epsilon"), scale[c], bias[c]);
    ++i;
  });
  return {result};
}

// Scale and bias broadcast to x.
References layer_normalization(const Call& call) {
  const Array& x = call.in(0);
  const int64_t axis = normal_axis(call.integer("axis"), x.rank());
  require(broadcast(call.in(1).extents, x.extents) == x.extents, "the scale does not broadcast to the input");
  require(!call.has(2) || broadcast(call.in(2).extents, x.extents) == x.extents,
          "the bias does not broadcast to the input");
  std::vector<double> scales, biases;
  for_each_index(x.extents, [&](const Index& index) {
    scales.push_back(call.in(1).broadcast_at(index));
    biases.push_back(call.has(2) ? call.in(2).broadcast_at(index) : 0);
  });
  Reference result = prepared(x, static_cast<double>(count_of({x.extents.begin() + axis, x.extents.end()})));
  for_each_group(x, axis, x.rank(), [&](const std::vector<size_t>& group) {
    const Moments m = moments(x, group);
    for (const size_t i : group) put(result, i, x.values[i], m, call.real("epsilon"), scales[i], biases[i]);
  });
  return {result};
}

References instance_normalization(const Call& call) {
  const Array& x = call.in(0, 3);
  const std::vector<double>&scale = call.vector(1, x.extents[1]), &bias = call.vector(2, x.extents[1]);
  Reference result = prepared(x, static_cast<double>(count_of({x.extents.begin() + 2, x.extents.end()})));
  size_t number = 0;
  for_each_group(x, 2, x.rank(), [&](const std::vector<size_t>& group) {
    const size_t channel = number++ % static_cast<size_t>(x.extents[1]);
    const Moments m = moments(x, group);
    for (const size_t i : group) {
      put(result, i, x.values[i], m, call.real("epsilon"), scale[channel], bias[channel]);
    }
  });
  return {result};
}

template <bool kLogarithm>
References softmax(const Call& call) {
  const Array& x = call.in(0);
  const int64_t axis = normal_axis(call.integer("axis"), x.rank());
  Reference result(Array(x.dtype, x.extents),
                   Rule::of(Rule::kSum, static_cast<double>(x.extents[static_cast<size_t>(axis)])));
  result.scale.resize(x.values.size());
  const FloatType& type = float_type(x.dtype);
  const double ksb = piled_up(result.rule.terms, type, std::max(type.fraction_bits, 23));
  for_each_group(x, axis, axis + 1, [&](const std::vector<size_t>& group) {
    double top = -HUGE_VAL, sum = 0;
    for (const size_t i : group) top = std::max(top, x.values[i]);
    for (const size_t i : group) sum += std::exp(x.values[i] - top);
    for (const size_t i : group) {
      const double share = std::exp(x.values[i] - top) / sum;
      result.value.values[i] = kLogarithm ? x.values[i] - top - std::log(sum) : share;
      // The share has the relative error of the sum, and 2·|x - top| ULP from exp, whose argument is rounded. The
      // logarithm turns these into absolute errors and adds the rounding of x and top.
      result.scale[i] = kLogarithm ? 1 + std::fabs(x.values[i]) + std::fabs(top)
                                   : share * (1 + 2 * std::fabs(x.values[i] - top) / std::max(ksb, 1.0));
    }
  });
  return {result};
}

const Operator kOperators[] = {
    {"BatchNormalization", {15}, batch_normalization},
    {"LayerNormalization", {17}, layer_normalization},
    {"InstanceNormalization", {6, 22}, instance_normalization},
    {"Softmax", {13}, softmax<false>},
    {"LogSoftmax", {13}, softmax<true>},
};

}  // namespace

std::span<const Operator> normalize_operators() {
  return kOperators;
}

}  // namespace backplane::conform
