// SPDX-License-Identifier: Apache-2.0
// For each operator, bounds how much its results change with its inputs: this is s in estimate.cpp. The bounds hold for
// all inputs in the box x ± e(x), not just near x.
#include "judge/error_propagation.h"

#include <algorithm>
#include <cmath>

#include "judge/estimate.h"

namespace backplane::conform {
namespace {

using Arrays = std::vector<Array>;

// The inputs of a call as arrays that may be changed. Omitted inputs are NULL in `pointers`.
struct Inputs {
  Arrays arrays;
  std::vector<const Array*> pointers;

  explicit Inputs(const Call& call) : arrays(call.input_count()), pointers(call.input_count()) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!call.has(i)) continue;
      arrays[i] = call.in(i);
      pointers[i] = &arrays[i];
    }
  }
  Errors compute(std::string_view op, const Call& call) const {
    Errors results;
    for (Reference& one : conform::compute(op, Call(pointers, call.attributes(), call.output_count()))) {
      results.push_back(std::move(one.value.values));
    }
    return results;
  }
};

std::vector<double> or_none(const std::vector<double>& errors, const Array& array) {
  return errors.empty() ? std::vector<double>(array.values.size(), 0.0) : errors;
}
Array as_array(const Array& like, std::vector<double> values) {
  Array array(like.dtype, like.extents);
  array.values = std::move(values);
  return array;
}
Errors none(std::string_view, const Call&, const Errors&, const References& result) {
  Errors bounds;
  for (const Reference& one : result) bounds.emplace_back(one.value.values.size(), 0.0);
  return bounds;
}

// Applies `op` to the errors. This is a bound if `op` moves data, is linear with non-negative weights, or is a norm or
// a maximum. All inputs after the first kDataInputs (indices, shapes) keep their values. With kPad the constant is
// replaced by its error, which is 0 if it is exact.
template <size_t kDataInputs = 1, bool kPad = false>
Errors moved(std::string_view op, const Call& call, const Errors& errors, const References&) {
  Inputs inputs(call);
  for (size_t i = 0; i < std::min(kDataInputs, inputs.arrays.size()); ++i) {
    if (call.has(i)) inputs.arrays[i].values = or_none(errors[i], inputs.arrays[i]);
  }
  if (kPad && call.has(2)) inputs.arrays[2].values = or_none(errors[2], inputs.arrays[2]);
  return inputs.compute(op, call);
}

// The weights of nearest and linear interpolation are never negative. Those of cubic interpolation may be, and
// tf_crop_and_resize may insert a constant, so neither of these two has a bound.
Errors resized(std::string_view op, const Call& call, const Errors& errors, const References& result) {
  if (call.text("mode") != "cubic" && call.text("coordinate_transformation_mode") != "tf_crop_and_resize")
    return moved<>(op, call, errors, result);
  return {std::vector<double>(result[0].value.values.size(), HUGE_VAL)};
}

// For monotonic functions, the largest change is at the ends of x ± e(x). If the function has a pole at 0, an interval
// that contains 0 has no bound.
template <bool kPoleAtZero = false>
Errors ends(std::string_view op, const Call& call, const Errors& errors, const References& result) {
  Errors bounds = none({}, call, errors, result);
  for (const double side : {-1.0, 1.0}) {
    if (errors[0].empty()) break;
    Inputs inputs(call);
    for (size_t i = 0; i < errors[0].size(); ++i) inputs.arrays[0].values[i] += side * errors[0][i];
    const Errors moved = inputs.compute(op, call);
    for (size_t i = 0; i < moved[0].size(); ++i) {
      const double there = moved[0][i], here = result[0].value.values[i];
      const bool pole = kPoleAtZero && std::fabs(call.in(0).values[i]) <= errors[0][i];
      const double distance = pole ? HUGE_VAL : there == here ? 0 : std::fabs(there - here);
      bounds[0][i] = std::isnan(distance) ? HUGE_VAL : std::max(bounds[0][i], distance);
    }
  }
  return bounds;
}

// If a limit changes by e, a clipped result changes by at most e in addition to the change from the data's own error.
Errors clip(std::string_view op, const Call& call, const Errors& errors, const References& result) {
  Errors bounds = ends<>(op, call, errors, result);
  double limits = 0;
  for (size_t i = 1; i < errors.size(); ++i) {
    for (const double e : errors[i]) limits = std::max(limits, e);
  }
  for (double& x : bounds[0]) x += limits;
  return bounds;
}

// For functions with |f'| <= kHundredths / 100 everywhere.
template <int kHundredths>
Errors lipschitz(std::string_view, const Call& call, const Errors& errors, const References&) {
  std::vector<double> bounds = or_none(errors[0], call.in(0));
  for (double& x : bounds) x *= kHundredths / 100.0;
  return {bounds};
}

// Calls `bound_of(values, their errors)`, which returns the bound of an element, for each element of the broadcast
// inputs.
template <class F>
Errors elementwise(const Call& call, const Errors& errors, const References& result, F bound_of) {
  std::vector<Array> moved;
  for (size_t i = 0; i < call.input_count(); ++i) {
    moved.push_back(as_array(call.in(i), or_none(errors[i], call.in(i))));
  }
  std::vector<double> bounds;
  std::vector<double> x(moved.size()), e(moved.size());
  for_each_index(result[0].value.extents, [&](const Index& index) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = call.in(i).broadcast_at(index);
      e[i] = moved[i].broadcast_at(index);
    }
    bounds.push_back(bound_of(x, e));
  });
  return {bounds};
}

Errors sums(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto&, const auto& e) {
    double sum = 0;
    for (const double x : e) sum += x;
    return sum;
  });
}
// A maximum changes by no more than the largest change of any of its inputs.
Errors furthest(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result,
                     [](const auto&, const auto& e) { return *std::max_element(e.begin(), e.end()); });
}
Errors product(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto& x, const auto& e) {
    return std::fabs(x[0]) * e[1] + std::fabs(x[1]) * e[0] + e[0] * e[1];
  });
}
// a'/b' - a/b = ((a' - a) - a/b·(b' - b)) / b'. A quotient of exact operands, such as integers, is exact for any b.
Errors quotient(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto& x, const auto& e) {
    if (e[0] == 0 && e[1] == 0) return 0.0;
    const double room = std::fabs(x[1]) - e[1];
    return room > 0 ? (e[0] + std::fabs(x[0] / x[1]) * e[1]) / room : HUGE_VAL;
  });
}
// For a > 0, a^b is largest and smallest at corners of the box.
Errors power(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto& x, const auto& e) {
    if (e[0] == 0 && e[1] == 0) return 0.0;
    if (x[0] - e[0] <= 0) return HUGE_VAL;
    double furthest = 0;
    for (const double a : {x[0] - e[0], x[0] + e[0]}) {
      for (const double b : {x[1] - e[1], x[1] + e[1]}) {
        furthest = std::max(furthest, std::fabs(std::pow(a, b) - std::pow(x[0], x[1])));
      }
    }
    return furthest;
  });
}
Errors prelu(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto& x, const auto& e) {
    return std::max(1.0, std::fabs(x[1]) + e[1]) * e[0] + (x[0] - e[0] < 0 ? (std::fabs(x[0]) + e[0]) * e[1] : 0.0);
  });
}
// The outcome of a comparison or a decision must be certain. Otherwise there is no bound.
Errors comparison(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto& x, const auto& e) {
    const double both = e[0] + e[1];
    return both != 0 && std::fabs(x[0] - x[1]) <= both ? HUGE_VAL : 0.0;
  });
}
Errors certain(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto&, const auto& e) {
    return std::all_of(e.begin(), e.end(), [](double x) { return x == 0; }) ? 0.0 : HUGE_VAL;
  });
}
Errors chosen(std::string_view, const Call& call, const Errors& errors, const References& result) {
  return elementwise(call, errors, result, [](const auto& x, const auto& e) {
    if (e[0] != 0) return HUGE_VAL;
    return x[0] != 0 ? e[1] : e[2];
  });
}

// Sums of products, linear in each factor: |f(a', b', c') - f(a, b, c)| <= f(e(a), |b|, e(c)) + f(|a| + e(a), e(b), 0).
// Gemm uses |alpha| and |beta|.
Errors bilinear(std::string_view op, const Call& call, const Errors& errors, const References& result) {
  Attributes attributes = call.attributes();
  for (Attribute& attribute : attributes) {
    if (float* factor = std::get_if<float>(&attribute.value)) *factor = std::fabs(*factor);
  }
  const Call positive(std::vector<const Array*>(call.input_count()), attributes, call.output_count());
  Errors total = none({}, call, errors, result);
  const auto add = [&](const Inputs& inputs) {
    const Errors part = inputs.compute(op, positive);
    for (size_t i = 0; i < part[0].size(); ++i) total[0][i] += part[0][i];
  };
  const bool has_third = call.has(2), third_moves = has_third && !errors[2].empty();
  const auto magnitude = [](Array& array) {
    for (double& x : array.values) x = std::fabs(x);
  };
  if (!errors[0].empty() || third_moves) {
    Inputs inputs(call);
    inputs.arrays[0].values = or_none(errors[0], inputs.arrays[0]);
    magnitude(inputs.arrays[1]);
    if (has_third) inputs.arrays[2].values = or_none(errors[2], inputs.arrays[2]);
    add(inputs);
  }
  if (!errors[1].empty()) {
    Inputs inputs(call);
    magnitude(inputs.arrays[0]);
    const std::vector<double> first = or_none(errors[0], inputs.arrays[0]);
    for (size_t i = 0; i < first.size(); ++i) inputs.arrays[0].values[i] += first[i];
    inputs.arrays[1].values = errors[1];
    if (has_third) std::fill(inputs.arrays[2].values.begin(), inputs.arrays[2].values.end(), 0.0);
    add(inputs);
  }
  return total;
}

// Replaces input 0 by error_of(x, e) and applies `op` instead of the node's operator.
template <class F>
Errors instead(std::string_view op, const Call& call, const Errors& errors, F error_of) {
  Inputs inputs(call);
  const std::vector<double> e = or_none(errors[0], inputs.arrays[0]);
  for (size_t i = 0; i < e.size(); ++i) inputs.arrays[0].values[i] = error_of(inputs.arrays[0].values[i], e[i]);
  return inputs.compute(op, call);
}
double own(double, double e) {
  return e;
}
Errors furthest_in_group(std::string_view, const Call& call, const Errors& errors, const References&) {
  return instead("ReduceMax", call, errors, own);
}
Errors sum_in_group(std::string_view, const Call& call, const Errors& errors, const References&) {
  return instead("ReduceSum", call, errors, own);
}
Errors sum_of_squares(std::string_view, const Call& call, const Errors& errors, const References&) {
  return instead("ReduceSum", call, errors, [](double x, double e) { return 2 * std::fabs(x) * e + e * e; });
}
// ∏(|x| + e) - ∏|x|
Errors product_in_group(std::string_view, const Call& call, const Errors& errors, const References&) {
  Errors wide = instead("ReduceProd", call, errors, [](double x, double e) { return std::fabs(x) + e; });
  const Errors narrow = instead("ReduceProd", call, errors, [](double x, double) { return std::fabs(x); });
  for (size_t i = 0; i < wide[0].size(); ++i) wide[0][i] -= narrow[0][i];
  return wide;
}

// Calls `visit(flat indices)` for each slice of x. A slice covers only `axis` if `alone`, otherwise all axes from
// `axis` on.
template <class F>
void for_each_slice(const Array& x, int64_t axis, bool alone, F visit) {
  int64_t outer = 1, size = 1, inner = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    (i < axis ? outer : i == axis || !alone ? size : inner) *= x.extents[static_cast<size_t>(i)];
  }
  std::vector<size_t> slice(static_cast<size_t>(size));
  for (int64_t at = 0; at < outer * inner; ++at) {
    for (int64_t s = 0; s < size; ++s) {
      slice[static_cast<size_t>(s)] = static_cast<size_t>((at / inner * size + s) * inner + at % inner);
    }
    visit(slice);
  }
}

// x - log Σ exp x changes by at most the error of x plus the largest error in the slice. Softmax is the exp of that.
template <bool kLogarithm>
Errors softmax(std::string_view, const Call& call, const Errors& errors, const References& result) {
  std::vector<double> e = or_none(errors[0], call.in(0)), bounds(e.size());
  for_each_slice(call.in(0), normal_axis(call.integer("axis"), call.in(0).rank()), true, [&](const auto& slice) {
    double largest = 0;
    for (const size_t i : slice) largest = std::max(largest, e[i]);
    for (const size_t i : slice) {
      const double moved = e[i] + largest;
      bounds[i] = kLogarithm ? moved : std::fabs(result[0].value.values[i]) * std::expm1(moved);
    }
  });
  return {bounds};
}

// y = (x - mean)·scale / √(variance + ε). The mean moves by at most the mean error m. σ = √(variance + ε) is a norm of
// the centered slice, so it moves by at most r, the root mean square error. Hence |y' - y| <= |scale|·((e + m)/(σ - r)
// + |x - mean|·r/(σ·(σ - r))). Scale and bias must be constant. `scale_at` returns the scale of the element at an
// index.
template <class F>
Errors normalized(const Call& call, const Errors& errors, int64_t first_axis, F scale_at) {
  const Array& x = call.in(0);
  std::vector<double> scales;
  for_each_index(x.extents, [&](const Index& index) { scales.push_back(std::fabs(scale_at(index))); });
  std::vector<double> e = or_none(errors[0], x), bounds(e.size());
  const bool bounded = errors[1].empty() && (!call.has(2) || errors[2].empty());
  for_each_slice(x, first_axis, false, [&](const auto& slice) {
    const auto n = static_cast<double>(slice.size());
    double mean = 0, variance = 0, m = 0, r = 0;
    for (const size_t i : slice) mean += x.values[i] / n;
    for (const size_t i : slice) {
      variance += (x.values[i] - mean) * (x.values[i] - mean) / n;
      m += e[i] / n;
      r += e[i] * e[i] / n;
    }
    const double sigma = std::sqrt(variance + call.real("epsilon"));
    r = std::sqrt(r);
    for (const size_t i : slice) {
      bounds[i] =
          bounded && r < sigma
              ? scales[i] * ((e[i] + m) / (sigma - r) + std::fabs(x.values[i] - mean) * r / (sigma * (sigma - r)))
              : HUGE_VAL;
    }
  });
  return {bounds};
}
Errors layer_normalization(std::string_view, const Call& call, const Errors& errors, const References&) {
  return normalized(call, errors, normal_axis(call.integer("axis"), call.in(0).rank()),
                    [&](const Index& index) { return call.in(1).broadcast_at(index); });
}
Errors instance_normalization(std::string_view, const Call& call, const Errors& errors, const References&) {
  return normalized(call, errors, 2, [&](const Index& index) { return call.in(1).at({index[1]}); });
}
Errors batch_normalization(std::string_view, const Call& call, const Errors& errors, const References&) {
  std::vector<double> bounds = or_none(errors[0], call.in(0));
  const bool constant = std::all_of(errors.begin() + 1, errors.end(), [](const auto& e) { return e.empty(); });
  size_t i = 0;
  for_each_index(call.in(0).extents, [&](const Index& index) {
    const auto c = static_cast<size_t>(index.size() > 1 ? index[1] : 0);
    const double factor = call.in(1).values[c] / std::sqrt(call.in(4).values[c] + call.real("epsilon"));
    bounds[i] = constant ? bounds[i] * std::fabs(factor) : HUGE_VAL;
    ++i;
  });
  return {bounds};
}

struct Row {
  std::string_view op;
  ErrorPropagation propagation;
};
// Operators that are not listed occur in no graph case, except for If, Loop and Scan, which control.cpp computes. Mod,
// ArgMax and ArgMin, for example, are discontinuous.
const Row kRows[] = {
    {"Abs", lipschitz<100>},
    {"Neg", lipschitz<100>},
    {"Sin", lipschitz<100>},
    {"Cos", lipschitz<100>},
    {"HardSwish", lipschitz<150>},  // the slope is largest at 3
    {"Gelu", lipschitz<114>},       // the slope is 1.129 at √2, in both forms
    {"Mish", lipschitz<110>},       // the slope is 1.089 near 1.5
    {"Sign", ends<>},
    {"Floor", ends<>},
    {"Ceil", ends<>},
    {"Round", ends<>},
    {"Relu", ends<>},
    {"LeakyRelu", ends<>},
    {"Sqrt", ends<>},
    {"Reciprocal", ends<true>},
    {"Erf", ends<>},
    {"Exp", ends<>},
    {"Sigmoid", ends<>},
    {"Log", ends<>},
    {"Tanh", ends<>},
    {"Elu", ends<>},
    {"Selu", ends<>},
    {"HardSigmoid", ends<>},
    {"Softplus", ends<>},
    {"Softsign", ends<>},
    {"Clip", clip},
    {"Cast", ends<>},
    {"IsNaN", none},
    {"Not", certain},
    {"And", certain},
    {"Or", certain},
    {"Xor", certain},
    {"Equal", comparison},
    {"Greater", comparison},
    {"GreaterOrEqual", comparison},
    {"Less", comparison},
    {"LessOrEqual", comparison},
    {"Where", chosen},
    {"Add", sums},
    {"Sub", sums},
    {"Sum", sums},
    {"Max", furthest},
    {"Min", furthest},
    {"Mul", product},
    {"Div", quotient},
    {"Pow", power},
    {"PRelu", prelu},
    {"MatMul", bilinear},
    {"Gemm", bilinear},
    {"Conv", bilinear},
    {"ConvTranspose", bilinear},
    {"Identity", moved<>},
    {"Reshape", moved<>},
    {"Flatten", moved<>},
    {"Squeeze", moved<>},
    {"Unsqueeze", moved<>},
    {"Transpose", moved<>},
    {"Split", moved<>},
    {"Expand", moved<>},
    {"Tile", moved<>},
    {"DepthToSpace", moved<>},
    {"SpaceToDepth", moved<>},
    {"Slice", moved<>},
    {"Gather", moved<>},
    {"GatherElements", moved<>},
    {"Resize", resized},
    {"Concat", moved<SIZE_MAX>},
    {"Pad", moved<1, true>},
    {"Shape", none},
    {"MaxPool", moved<>},
    {"AveragePool", moved<>},
    {"GlobalMaxPool", moved<>},
    {"GlobalAveragePool", moved<>},
    {"ReduceSum", moved<>},
    {"ReduceMean", moved<>},
    {"ReduceMax", moved<>},
    {"ReduceMin", furthest_in_group},
    {"ReduceL1", sum_in_group},
    {"ReduceL2", moved<>},
    {"ReduceSumSquare", sum_of_squares},
    {"ReduceLogSumExp", furthest_in_group},
    {"ReduceProd", product_in_group},
    {"Softmax", softmax<false>},
    {"LogSoftmax", softmax<true>},
    {"LayerNormalization", layer_normalization},
    {"InstanceNormalization", instance_normalization},
    {"BatchNormalization", batch_normalization},
};

}  // namespace

ErrorPropagation find_error_propagation(std::string_view op) {
  for (const Row& row : kRows) {
    if (row.op == op) return row.propagation;
  }
  return nullptr;
}

}  // namespace backplane::conform
