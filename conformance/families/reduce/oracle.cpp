// SPDX-License-Identifier: Apache-2.0
// Oracles of reductions over axes.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "backplane/graph.hpp"

namespace backplane::conform {
namespace {

struct Reduced {
  Array shape;                              // the result's type and extents; the values are not set
  std::vector<std::vector<double>> groups;  // for each result element, the elements that are reduced to it
  double terms = 1;
};

Reduced reduce(const Array& x, const std::set<int64_t>& axes, bool keep) {
  Extents kept, shape;
  double terms = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t extent = x.extents[static_cast<size_t>(i)];
    const bool gone = axes.contains(i);
    kept.push_back(gone ? 1 : extent);
    if (gone) terms *= static_cast<double>(extent);
    if (!gone || keep) shape.push_back(gone ? 1 : extent);
  }
  Reduced result{Array(x.dtype, shape), {}, terms};
  result.groups.resize(result.shape.values.size());
  for_each_index(x.extents, [&](const Index& index) {
    size_t to = 0;
    for (size_t i = 0; i < kept.size(); ++i)
      to = to * static_cast<size_t>(kept[i]) + static_cast<size_t>(kept[i] == 1 ? 0 : index[i]);
    result.groups[to].push_back(x.at(index));
  });
  return result;
}

// Input 1 lists the axes. Without axes, all axes are reduced, or none with `noop_with_empty_axes`.
Reduced reduce(const Call& call) {
  const Array& x = call.in(0);
  std::set<int64_t> axes;
  if (call.has(1)) {
    for (const int64_t axis : call.integers(1)) axes.insert(normal_axis(axis, x.rank()));
  }
  if (axes.empty() && call.integer("noop_with_empty_axes") == 0) {
    for (int64_t i = 0; i < x.rank(); ++i) axes.insert(i);
  }
  return reduce(x, axes, call.integer("keepdims", 1) != 0);
}

using Fold = double (*)(const std::vector<double>& values);

template <Fold kFold, Fold kScale>
References folded(const Call& call, Rule rule) {
  Reduced reduced = reduce(call);
  rule.terms = reduced.terms;
  Reference result(std::move(reduced.shape), rule);
  for (size_t i = 0; i < reduced.groups.size(); ++i) {
    result.value.values[i] = kFold(reduced.groups[i]);
    if constexpr (kScale != nullptr) result.scale.push_back(kScale(reduced.groups[i]));
  }
  return {result};
}

double sum(const std::vector<double>& values) {
  double s = 0;
  for (const double x : values) s += x;
  return s;
}
double sum_of_magnitudes(const std::vector<double>& values) {
  double s = 0;
  for (const double x : values) s += std::fabs(x);
  return s;
}
double sum_of_squares(const std::vector<double>& values) {
  double s = 0;
  for (const double x : values) s += x * x;
  return s;
}
double mean(const std::vector<double>& values) {
  return sum(values) / static_cast<double>(values.size());
}
double mean_of_magnitudes(const std::vector<double>& values) {
  return sum_of_magnitudes(values) / static_cast<double>(values.size());
}
double length(const std::vector<double>& values) {
  return std::sqrt(sum_of_squares(values));
}
double largest(const std::vector<double>& values) {
  double best = -HUGE_VAL;
  for (const double x : values) best = std::isnan(best) || best > x ? best : x;
  return best;
}
double smallest(const std::vector<double>& values) {
  double best = HUGE_VAL;
  for (const double x : values) best = std::isnan(best) || best < x ? best : x;
  return best;
}
double product(const std::vector<double>& values) {
  double p = 1;
  for (const double x : values) p *= x;
  return p;
}
double log_sum_exp(const std::vector<double>& values) {
  const double top = largest(values);
  double s = 0;
  for (const double x : values) s += std::exp(x - top);
  return top + std::log(s);
}
// The scale of top + log Σ exp(x - top), where top is the largest element: 1, because a relative error of the sum is an
// absolute error of its logarithm, plus |top|, for the rounding when it is added.
double log_sum_exp_scale(const std::vector<double>& values) {
  return 1 + std::fabs(largest(values));
}

template <Fold kFold, Fold kScale>
References dot(const Call& call) {
  return folded<kFold, kScale>(call, Rule::of(Rule::kDot));
}
template <Fold kFold, Fold kScale>
References summed(const Call& call) {
  return folded<kFold, kScale>(call, Rule::of(Rule::kSum));
}
// For types without infinities, the maximum of no elements is the smallest number of the type, and the minimum of no
// elements the largest.
template <Fold kFold>
References picked(const Call& call) {
  References results = folded<kFold, nullptr>(call, Rule::exact());
  const bp_dtype_t dtype = call.in(0).dtype;
  if (is_float(dtype)) return results;
  const bool is_signed =
      dtype == BP_DTYPE_INT8 || dtype == BP_DTYPE_INT16 || dtype == BP_DTYPE_INT32 || dtype == BP_DTYPE_INT64;
  const int bits = dtype == BP_DTYPE_BOOL ? 1 : static_cast<int>(view::dtype_bits(dtype));
  for (double& x : results[0].value.values) {
    if (std::isfinite(x)) continue;
    require_known(bits < 64, "the oracle does not compute the maximum or minimum of no 64-bit integers");
    x = x < 0 ? (is_signed ? -std::ldexp(1, bits - 1) : 0) : std::ldexp(1, bits - (is_signed ? 1 : 0)) - 1;
  }
  return results;
}
References multiplied(const Call& call) {
  return folded<product, nullptr>(call, Rule::of(Rule::kProduct));
}

template <bool kWantLargest>
References arg(const Call& call) {
  const Array& x = call.in(0);
  const bool last = call.integer("select_last_index") != 0;
  const Reduced reduced = reduce(x, {normal_axis(call.integer("axis"), x.rank())}, call.integer("keepdims", 1) != 0);
  Array result(BP_DTYPE_INT64, reduced.shape.extents);
  for (size_t g = 0; g < reduced.groups.size(); ++g) {
    const std::vector<double>& values = reduced.groups[g];
    size_t best = 0;
    for (size_t i = 1; i < values.size(); ++i) {
      const bool better = kWantLargest ? values[i] > values[best] : values[i] < values[best];
      if (better || (last && values[i] == values[best])) best = i;
    }
    result.values[g] = static_cast<double>(best);
  }
  return {Reference(std::move(result), Rule::exact())};
}

const Operator kOperators[] = {
    {"ReduceSum", {13}, dot<sum, sum_of_magnitudes>},
    {"ReduceL1", {18}, dot<sum_of_magnitudes, sum_of_magnitudes>},
    {"ReduceSumSquare", {18}, dot<sum_of_squares, sum_of_squares>},
    {"ReduceMean", {18}, summed<mean, mean_of_magnitudes>},
    {"ReduceL2", {18}, summed<length, length>},
    {"ReduceLogSumExp", {18, 28}, summed<log_sum_exp, log_sum_exp_scale>},
    {"ReduceMax", {18, 20}, picked<largest>},
    {"ReduceMin", {18, 20}, picked<smallest>},
    {"ReduceProd", {18}, multiplied},
    {"ArgMax", {13}, arg<true>},
    {"ArgMin", {13}, arg<false>},
};

}  // namespace

std::span<const Operator> reduce_operators() {
  return kOperators;
}

}  // namespace backplane::conform
