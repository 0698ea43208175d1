// SPDX-License-Identifier: Apache-2.0
// Oracles of com.microsoft's operators on tensors of 8-bit quantized values. Each value stands for the real number
// (value - zero point)·scale. The operator computes with these numbers and quantizes its result, as fp32 arithmetic
// does: a number near the midpoint of two integers may be rounded either way.
#include <algorithm>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

constexpr double kUnit = 0x1p-24;  // the relative error of one fp32 rounding, the unit of Tracked::error

// A scale, and the zero point in the slot after it, which may be omitted.
struct Step {
  Tracked scale;
  double zero;

  Step(const Call& call, size_t slot) : scale(call.single(slot)), zero(call.has(slot + 1) ? call.single(slot + 1) : 0) {
    require(call.in(slot).dtype == BP_DTYPE_FLOAT, "a scale is not FLOAT");
  }
  Tracked real(double value) const { return Tracked(value - zero) * scale; }
};

void require_bytes(const Array& x) {
  require(x.dtype == BP_DTYPE_UINT8 || x.dtype == BP_DTYPE_INT8, "an input is not of 8-bit integers");
}

// A quantized result. `set` takes real numbers.
class Quantized {
  Array values_, slack_;
  Step step_;

 public:
  Quantized(bp_dtype_t type, const Extents& extents, const Step& step)
      : values_(type, extents), slack_(BP_DTYPE_DOUBLE, extents), step_(step) {}

  void set(const Index& at, const Tracked& real) {
    const double low = values_.dtype == BP_DTYPE_INT8 ? -128 : 0;
    const auto kept = [&](double number) { return std::clamp(number, low, low + 255); };
    // A device may add the zero point before it rounds. Beyond the range, an error of the sum changes nothing. Twice
    // the first-order error covers the terms of higher order.
    const Tracked sum = real / step_.scale + Tracked(step_.zero);
    const double slack = 2 * sum.error * kUnit, value = kept(sum.value);
    values_.at(at) = value;
    slack_.at(at) = std::max(value - kept(sum.value - slack), kept(sum.value + slack) - value);
  }
  Reference result() const {
    Reference result(values_, Rule::of(Rule::kStep));
    result.scale = slack_.values;
    return result;
  }
};

// Inputs: A and B with their scales and zero points, then those of the result.
template <bool kAdds>
References quantized_binary(const Call& call) {
  const Array &a = call.in(0), &b = call.in(3);
  require_bytes(a);
  require(a.dtype == b.dtype, "A and B have different types");
  const Step of_a(call, 1), of_b(call, 4);
  const Extents extents = broadcast(a.extents, b.extents);
  Quantized y(a.dtype, extents, Step(call, 6));
  for_each_index(extents, [&](const Index& at) {
    const Tracked first = of_a.real(a.broadcast_at(at)), second = of_b.real(b.broadcast_at(at));
    y.set(at, kAdds ? first + second : first * second);
  });
  return {y.result()};
}

Tracked leaky_relu_of(const Call& call, const Tracked& x) {
  return x.value < 0 ? Tracked(call.real("alpha", 0.01f)) * x : x;
}
Tracked sigmoid_of(const Call&, const Tracked& x) {
  return sigmoid(x);
}

// Inputs: X with its scale and zero point, then those of the result.
template <Tracked (*kFunction)(const Call& call, const Tracked& x)>
References quantized_unary(const Call& call) {
  const Array& x = call.in(0);
  require_bytes(x);
  const Step step(call, 1);
  Quantized y(x.dtype, x.extents, Step(call, 3));
  for_each_index(x.extents, [&](const Index& at) { y.set(at, kFunction(call, step.real(x.at(at)))); });
  return {y.result()};
}

// Inputs: the scale and zero point of the result, then those of each tensor after it.
References quantized_concat(const Call& call) {
  require(call.input_count() >= 5 && call.input_count() % 3 == 2, "the inputs are not 2 and three for each tensor");
  const Array& first = call.in(2, 1);
  require_bytes(first);
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis"), first.rank()));
  Extents extents = first.extents;
  extents[axis] = 0;
  for (size_t slot = 2; slot < call.input_count(); slot += 3) {
    Extents others = call.in(slot, first.rank()).extents;
    extents[axis] += others[axis];
    others[axis] = first.extents[axis];
    require(others == first.extents && call.in(slot).dtype == first.dtype, "the tensors do not fit each other");
  }
  Quantized y(first.dtype, extents, Step(call, 0));
  int64_t begin = 0;
  for (size_t slot = 2; slot < call.input_count(); slot += 3) {
    const Array& x = call.in(slot);
    const Step step(call, slot + 1);
    for_each_index(x.extents, [&](const Index& at) {
      Index to = at;
      to[axis] += begin;
      y.set(to, step.real(x.at(at)));
    });
    begin += x.extents[axis];
  }
  return {y.result()};
}

// Computes ONNX's pooling operator on the values less their zero point, and quantizes the means. A padded element
// stands for 0.
References quantized_pool(const Call& call, std::string_view op) {
  const Array& x = call.in(0, 3);
  require_bytes(x);
  const bool is_last = call.integer("channels_last") != 0;
  require_known(!is_last || op == "GlobalAveragePool", "the oracle pools images only with their channels first");
  const Step step(call, 1);
  // The index at which an element with the channels first is in X or the result.
  const auto stored = [&](Index at) {
    if (is_last) std::rotate(at.begin() + 1, at.begin() + 2, at.end());
    return at;
  };
  Extents image = x.extents;
  if (is_last) std::rotate(image.begin() + 1, image.end() - 1, image.end());
  Array centred(BP_DTYPE_FLOAT, image);
  for_each_index(image, [&](const Index& at) { centred.at(at) = x.at(stored(at)) - step.zero; });
  const Reference mean = compute(op, Call({&centred}, call.attributes(), 1)).at(0);
  Quantized y(x.dtype, stored(mean.value.extents), Step(call, 3));
  size_t i = 0;
  for_each_index(mean.value.extents, [&](const Index& at) {
    const double value = mean.value.values[i],
                 error = bound(mean.rule, float_type(BP_DTYPE_FLOAT), value, mean.scale[i]);
    y.set(stored(at), Tracked(value, error / kUnit) * step.scale);
    ++i;
  });
  return {y.result()};
}
References quantized_average_pool(const Call& call) {
  return quantized_pool(call, "AveragePool");
}
References quantized_global_average_pool(const Call& call) {
  return quantized_pool(call, "GlobalAveragePool");
}

constexpr std::string_view kMicrosoft = "com.microsoft";
const Operator kOperators[] = {
    {"QLinearAdd", {1}, quantized_binary<true>, kMicrosoft},
    {"QLinearAveragePool", {1}, quantized_average_pool, kMicrosoft},
    {"QLinearConcat", {1}, quantized_concat, kMicrosoft},
    {"QLinearGlobalAveragePool", {1}, quantized_global_average_pool, kMicrosoft},
    {"QLinearLeakyRelu", {1}, quantized_unary<leaky_relu_of>, kMicrosoft},
    {"QLinearMul", {1}, quantized_binary<false>, kMicrosoft},
    {"QLinearSigmoid", {1}, quantized_unary<sigmoid_of>, kMicrosoft},
};

}  // namespace

std::span<const Operator> qlinear_operators() {
  return kOperators;
}

}  // namespace backplane::conform
