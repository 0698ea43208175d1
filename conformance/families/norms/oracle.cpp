// SPDX-License-Identifier: Apache-2.0
// Oracles of cumulative sums, norms, and divisions by norms.
#include <algorithm>
#include <cmath>
#include <set>

#include "judge/tracked.h"
#include "judge/window.h"

namespace backplane::conform {
namespace {

// Calls `visit` with the flat indices of each group of elements whose positions differ only along `axes`.
template <class F>
void for_each_group(const Array& x, const std::set<int64_t>& axes, F visit) {
  Extents outer = x.extents, inner = x.extents;
  for (size_t i = 0; i < outer.size(); ++i) (axes.contains(static_cast<int64_t>(i)) ? outer : inner)[i] = 1;
  for_each_index(outer, [&](const Index& first) {
    std::vector<size_t> group;
    for_each_index(inner, [&](const Index& rest) {
      size_t at = 0;
      for (size_t i = 0; i < first.size(); ++i)
        at = at * static_cast<size_t>(x.extents[i]) + static_cast<size_t>(first[i] + rest[i]);
      group.push_back(at);
    });
    visit(static_cast<const std::vector<size_t>&>(group));
  });
}

std::vector<Tracked> exact(const Array& x) {
  return {x.values.begin(), x.values.end()};
}
void require_float(const Array& x) {
  require(is_float(x.dtype), "the operator is for floating-point numbers");
}

template <bool kProduct>
References cumulative(const Call& call) {
  const Array& x = call.in(0, 1);
  const auto axis = static_cast<size_t>(normal_axis(whole(call.single(1)), x.rank()));
  const bool exclusive = call.integer("exclusive") != 0, reverse = call.integer("reverse") != 0;
  const int64_t extent = x.extents[axis];
  const double terms = static_cast<double>(std::max<int64_t>(1, extent));
  Reference result(Array(x.dtype, x.extents), kProduct ? Rule::of(Rule::kProduct, terms) : Rule::of(Rule::kDot, terms));
  for_each_index(x.extents, [&](const Index& index) {
    double value = kProduct ? 1 : 0, scale = 0;
    Index from = index;
    for (int64_t i = 0; i < extent; ++i) {
      from[axis] = i;
      const bool is_before = reverse ? i > index[axis] : i < index[axis];
      if (!is_before && (exclusive || i != index[axis])) continue;
      value = kProduct ? value * x.at(from) : value + x.at(from);
      scale += std::fabs(x.at(from));
    }
    result.value.at(index) = value;
    result.scale.push_back(scale);
  });
  if (kProduct) result.scale.clear();
  return {Reference(std::move(result))};
}

References reduce_log_sum(const Call& call) {
  const Array& x = call.in(0);
  require_float(x);
  std::set<int64_t> axes;
  if (call.has(1)) {
    for (const int64_t axis : call.integers(1)) axes.insert(normal_axis(axis, x.rank()));
  }
  if (axes.empty() && call.integer("noop_with_empty_axes") == 0) {
    for (int64_t i = 0; i < x.rank(); ++i) axes.insert(i);
  }
  Extents shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!axes.contains(i))
      shape.push_back(x.extents[static_cast<size_t>(i)]);
    else if (call.integer("keepdims", 1) != 0)
      shape.push_back(1);
  }
  std::vector<Tracked> elements;
  for_each_group(x, axes, [&](const std::vector<size_t>& group) {
    TrackedSum sum(x.dtype);
    for (const size_t i : group) sum.add(x.values[i]);
    elements.push_back(log(sum.result()));
  });
  return {tracked_reference(x.dtype, shape, elements)};
}

// (Σ|x|^p)^(1/p) for p = 1 or p = 2.
Tracked norm(const Array& x, const std::vector<size_t>& group, int64_t p) {
  require_known(p == 1 || p == 2, "the oracle supports p = 1 and p = 2");
  TrackedSum sum(x.dtype);
  for (const size_t i : group) sum.add(std::fabs(x.values[i]), p == 1 ? 1 : std::fabs(x.values[i]));
  return p == 1 ? sum.result() : sqrt(sum.result());
}

References lp_normalization(const Call& call) {
  const Array& x = call.in(0, 1);
  require_float(x);
  std::vector<Tracked> elements(x.values.size());
  for_each_group(x, {normal_axis(call.integer("axis", -1), x.rank())}, [&](const std::vector<size_t>& group) {
    const Tracked length = norm(x, group, call.integer("p", 2));
    for (const size_t i : group) elements[i] = length.value == 0 ? Tracked(0.0) : Tracked(x.values[i]) / length;
  });
  return {tracked_reference(x.dtype, x.extents, elements)};
}

References global_lp_pool(const Call& call) {
  const Array& x = call.in(0, 3);
  require_float(x);
  Extents shape = x.extents;
  std::set<int64_t> axes;
  for (int64_t i = 2; i < x.rank(); ++i) {
    axes.insert(i);
    shape[static_cast<size_t>(i)] = 1;
  }
  std::vector<Tracked> elements;
  for_each_group(x, axes,
                 [&](const std::vector<size_t>& group) { elements.push_back(norm(x, group, call.integer("p", 2))); });
  return {tracked_reference(x.dtype, shape, elements)};
}

References lp_pool(const Call& call) {
  const Array& x = call.in(0, 3);
  require_float(x);
  const Window window(call, x.extents, {});
  Extents shape = {x.extents[0], x.extents[1]};
  shape.insert(shape.end(), window.out.begin(), window.out.end());
  const size_t axes = window.out.size();
  require_steps(static_cast<double>(count_of(shape)) * static_cast<double>(count_of(window.kernel)));
  std::vector<Tracked> elements;
  for_each_index(shape, [&](const Index& index) {
    std::vector<size_t> group;
    for_each_index(window.kernel, [&](const Index& tap) {
      Index from = {index[0], index[1]};
      for (size_t i = 0; i < axes; ++i) from.push_back(window.source(i, index[i + 2], tap[i]));
      if (std::any_of(from.begin(), from.end(), [](int64_t at) { return at < 0; })) return;
      size_t at = 0;
      for (size_t i = 0; i < from.size(); ++i)
        at = at * static_cast<size_t>(x.extents[i]) + static_cast<size_t>(from[i]);
      group.push_back(at);
    });
    elements.push_back(norm(x, group, call.integer("p", 2)));
  });
  return {tracked_reference(x.dtype, shape, elements)};
}

// x / (bias + alpha/size · Σ x²)^beta, where the sum is over the `size` channels around each channel.
References lrn(const Call& call) {
  const Array& x = call.in(0, 2);
  require_float(x);
  const int64_t size = call.integer("size");
  require(size >= 1 && size < 1 << 20, "the size is not from 1 to 2^20 - 1");
  const double alpha = call.real("alpha", 1e-4), beta = call.real("beta", 0.75), bias = call.real("bias", 1);
  std::vector<Tracked> elements;
  for_each_index(x.extents, [&](const Index& index) {
    TrackedSum sum(x.dtype);
    for (int64_t c = index[1] - (size - 1) / 2; c <= index[1] + size / 2; ++c) {
      if (c < 0 || c >= x.extents[1]) continue;
      Index at = index;
      at[1] = c;
      sum.add(x.at(at), x.at(at));
    }
    const Tracked base = Tracked(bias) + Tracked(alpha) / Tracked(static_cast<double>(size)) * sum.result();
    require(base.value > 0, "the base of a power is not positive");
    // The error bound of pow is (7.5·|y·ln x| + 3)·2^-frac, where 2^-frac is two roundings.
    const double power = std::pow(base.value, beta);
    const Tracked divisor = {power, power * (std::fabs(beta) * base.error / base.value +
                                             2 * (7.5 * std::fabs(beta * std::log(base.value)) + 3))};
    elements.push_back(Tracked(x.at(index)) / divisor);
  });
  return {tracked_reference(x.dtype, x.extents, elements)};
}

// The mean of one group and its deviation, √(variance + ε). Devices may compute the variance as the mean of squares
// minus the squared mean.
struct Moments {
  Tracked mean, deviation;
};
Moments moments(const std::vector<Tracked>& x, const std::vector<size_t>& group, bp_dtype_t dtype, double epsilon) {
  const Tracked n(static_cast<double>(group.size()));
  TrackedSum sum(dtype), squares(dtype);
  for (const size_t i : group) sum.add(x[i]);
  const Tracked mean = sum.result() / n;
  double variance = 0;
  for (const size_t i : group) {
    squares.add(x[i], x[i]);
    variance += (x[i].value - mean.value) * (x[i].value - mean.value) / n.value;
  }
  const Tracked difference = squares.result() / n - mean * mean;
  return {mean, sqrt(Tracked(variance, difference.error) + Tracked(epsilon))};
}

References mean_variance(const Call& call) {
  const Array& x = call.in(0, 1);
  require_float(x);
  std::set<int64_t> axes;
  for (const int64_t axis : call.ints("axes", {0, 2, 3})) axes.insert(normal_axis(axis, x.rank()));
  std::vector<Tracked> all = exact(x), elements = all;
  for_each_group(x, axes, [&](const std::vector<size_t>& group) {
    const Moments m = moments(all, group, x.dtype, 1e-9);
    for (const size_t i : group) elements[i] = (all[i] - m.mean) / m.deviation;
  });
  return {tracked_reference(x.dtype, x.extents, elements)};
}

References group_normalization(const Call& call) {
  const Array& x = call.in(0, 3);
  require_float(x);
  const int64_t groups = call.integer("num_groups"), channels = x.extents[1];
  require(groups > 0 && channels % groups == 0, "num_groups is not a positive divisor of the number of channels");
  const std::vector<double>&scale = call.vector(1, channels), &bias = call.vector(2, channels);
  Array split = x;
  split.extents[1] = groups;
  split.extents.insert(split.extents.begin() + 2, channels / groups);
  std::set<int64_t> axes;
  for (int64_t i = 2; i < split.rank(); ++i) axes.insert(i);
  std::vector<Tracked> all = exact(x), elements = all;
  const int64_t plane = channels == 0 ? 1 : count_of({x.extents.begin() + 2, x.extents.end()});
  for_each_group(split, axes, [&](const std::vector<size_t>& group) {
    const Moments m = moments(all, group, x.dtype, call.real("epsilon", 1e-5));
    for (const size_t i : group) {
      const size_t channel = i / static_cast<size_t>(plane) % static_cast<size_t>(channels);
      elements[i] = (all[i] - m.mean) / m.deviation * Tracked(scale[channel]) + Tracked(bias[channel]);
    }
  });
  return {tracked_reference(x.dtype, x.extents, elements)};
}

References rms_normalization(const Call& call) {
  const Array &x = call.in(0, 1), &scale = call.in(1);
  require_float(x);
  const int64_t axis = normal_axis(call.integer("axis", -1), x.rank());
  require(broadcast(scale.extents, x.extents) == x.extents, "the scale does not broadcast to the input");
  std::set<int64_t> axes;
  for (int64_t i = axis; i < x.rank(); ++i) axes.insert(i);
  std::vector<Tracked> elements(x.values.size());
  for_each_group(x, axes, [&](const std::vector<size_t>& group) {
    TrackedSum sum(x.dtype);
    for (const size_t i : group) sum.add(x.values[i], x.values[i]);
    const Tracked root =
        sqrt(sum.result() / Tracked(static_cast<double>(group.size())) + Tracked(call.real("epsilon", 1e-5)));
    for (const size_t i : group) elements[i] = Tracked(x.values[i]) / root;
  });
  size_t i = 0;
  for_each_index(x.extents, [&](const Index& index) {
    elements[i] = elements[i] * Tracked(scale.broadcast_at(index));
    ++i;
  });
  return {tracked_reference(x.dtype, x.extents, elements)};
}

References mean(const Call& call) {
  require(call.input_count() > 0, "there is no input");
  const Array& first = call.in(0);
  require_float(first);
  Extents shape = first.extents;
  for (size_t i = 1; i < call.input_count(); ++i) {
    require(call.in(i).dtype == first.dtype, "the inputs have different types");
    shape = broadcast(shape, call.in(i).extents);
  }
  std::vector<Tracked> elements;
  for_each_index(shape, [&](const Index& index) {
    TrackedSum sum(first.dtype);
    for (size_t i = 0; i < call.input_count(); ++i) sum.add(call.in(i).broadcast_at(index));
    elements.push_back(sum.result() / Tracked(static_cast<double>(call.input_count())));
  });
  return {tracked_reference(first.dtype, shape, elements)};
}

const Operator kOperators[] = {
    {"CumSum", {14}, cumulative<false>},
    {"CumProd", {26}, cumulative<true>},
    {"ReduceLogSum", {18, 28}, reduce_log_sum},
    {"LpNormalization", {1, 22}, lp_normalization},
    {"GlobalLpPool", {2, 22}, global_lp_pool},
    {"LpPool", {18, 22}, lp_pool},
    {"LRN", {13}, lrn},
    {"MeanVarianceNormalization", {13}, mean_variance},
    {"GroupNormalization", {21}, group_normalization},
    {"RMSNormalization", {23}, rms_normalization},
    {"Mean", {13}, mean},
};

}  // namespace

std::span<const Operator> norms_operators() {
  return kOperators;
}

}  // namespace backplane::conform
