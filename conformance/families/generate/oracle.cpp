// SPDX-License-Identifier: Apache-2.0
// Oracles of tensors that are generated from extents and a few numbers.
#include "judge/oracle.h"

#include <cmath>
#include <numbers>

namespace backplane::conform {
namespace {

// All elements are FLOAT zeros, because no case has the attribute `value`.
References constant_of_shape(const Call& call) {
  return {Reference(Array(BP_DTYPE_FLOAT, call.integers(0)), Rule::bits())};
}

References eye_like(const Call& call) {
  const Array& x = call.in(0, 2);
  require(x.rank() == 2, "the input is not a matrix");
  const int64_t k = call.integer("k"), to = call.integer("dtype", x.dtype);
  require(k > -kMaxElements && k < kMaxElements, "the diagonal is far outside");
  require(to > 0 && to <= BP_DTYPE_BFLOAT16 && to != BP_DTYPE_STRING,
          "the type of the result must be from FLOAT to BFLOAT16 in ONNX's order, and not STRING");
  Array result(static_cast<bp_dtype_t>(to), x.extents);
  for (int64_t i = 0; i < x.extents[0]; ++i) {
    if (i >= -k && i < x.extents[1] - k) result.at({i, i + k}) = 1;
  }
  return {Reference(std::move(result), Rule::bits())};
}

References range(const Call& call) {
  const double start = call.single(0), limit = call.single(1), delta = call.single(2);
  require(call.in(1).dtype == call.in(0).dtype && call.in(2).dtype == call.in(0).dtype,
          "the inputs have different types");
  require(delta != 0 && std::isfinite(start) && std::isfinite(limit) && std::isfinite(delta),
          "the step is 0, or start, limit or step is not finite");
  const double count = std::fmax(0, std::ceil((limit - start) / delta));
  require(count <= kMaxElements, "there are more elements than the oracle supports");
  // A device may compute each element as a product and a sum, or add the step repeatedly.
  Reference result(Array(call.in(0).dtype, {static_cast<int64_t>(count)}), Rule::of(Rule::kDot, std::fmax(2, count)));
  for (size_t i = 0; i < result.value.values.size(); ++i) {
    result.value.values[i] = start + static_cast<double>(i) * delta;
    result.scale.push_back(std::fabs(start) + std::fabs(static_cast<double>(i) * delta));
  }
  return {Reference(std::move(result))};
}

References size(const Call& call) {
  Array result(BP_DTYPE_INT64, {});
  result.values[0] = static_cast<double>(call.in(0).count());
  return {Reference(std::move(result), Rule::exact())};
}

// a0 - a1·cos(2πi/N) + a2·cos(4πi/N), where N is the number of elements, or one less for a symmetric window.
struct Cosines {
  double a0, a1, a2;
};
template <const Cosines& kCosines>
References window(const Call& call) {
  const int64_t count = whole(call.single(0));
  require(count >= 1 && count <= kMaxElements, "the size of the window is not from 1 to 2^24");
  require_known(call.integer("output_datatype", 1) == BP_DTYPE_FLOAT, "the oracle supports only FLOAT windows");
  const double period = static_cast<double>(call.integer("periodic", 1) != 0 ? count : std::max<int64_t>(1, count - 1));
  Reference result(Array(BP_DTYPE_FLOAT, {count}), Rule::smooth());
  for (size_t i = 0; i < result.value.values.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    result.value.values[i] = kCosines.a0 - kCosines.a1 * std::cos(angle) + kCosines.a2 * std::cos(2 * angle);
    // The scale covers the three terms and the rounding of the cosines' arguments, which are at most 2π and 4π.
    result.scale.push_back(1 + kCosines.a1 * angle + kCosines.a2 * 2 * angle);
  }
  return {result};
}
constexpr Cosines kHann = {0.5, 0.5, 0};
constexpr Cosines kHamming = {25.0 / 46, 21.0 / 46, 0};
constexpr Cosines kBlackman = {0.42, 0.5, 0.08};

// Triangular filters over the bins of a spectrum. Their corners are equidistant on the mel scale, rounded down to a
// bin.
References mel_weights(const Call& call) {
  const int64_t filters = whole(call.single(0)), length = whole(call.single(1)), rate = whole(call.single(2));
  const double low = call.single(3), high = call.single(4);
  require(filters > 0 && filters < 4096 && length > 0 && length < 1 << 20 && rate > 0,
          "num_mel_bins must be from 1 to 4095, dft_length from 1 to 2^20 - 1, and sample_rate positive");
  require(low >= 0 && low < high && high <= static_cast<double>(rate) / 2,
          "the lower edge must be 0 or more, and the upper one above it and at most half of sample_rate");
  require_known(call.integer("output_datatype", 1) == BP_DTYPE_FLOAT, "the oracle supports only FLOAT weights");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<double> corners;
  for (int64_t i = 0; i < filters + 2; ++i) {
    const double at = mel(low) + (mel(high) - mel(low)) * static_cast<double>(i) / static_cast<double>(filters + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    corners.push_back(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  }
  Reference result(Array(BP_DTYPE_FLOAT, {length / 2 + 1, filters}), Rule::within(4));  // a quotient of integers
  for_each_index(result.value.extents, [&](const Index& at) {
    const auto filter = static_cast<size_t>(at[1]);
    const double bin = static_cast<double>(at[0]), begin = corners[filter], top = corners[filter + 1],
                 end = corners[filter + 2];
    double& weight = result.value.at(at);
    if (bin == top) weight = 1;
    if (bin >= begin && bin < top) weight = (bin - begin) / (top - begin);
    if (bin > top && bin < end) weight = (end - bin) / (end - top);
  });
  return {result};
}

// `values` holds the off and on values. An index outside [-depth, depth) sets no element to on.
References one_hot(const Call& call) {
  const Array &indices = call.in(0), &values = call.in(2);
  const int64_t depth = whole(call.single(1)), rank = indices.rank() + 1;
  require(values.extents == Extents{2} && depth >= 0, "the values are not off and on, or the depth is negative");
  const int64_t axis = normal_axis(call.integer("axis", -1), rank);
  Extents shape = indices.extents;
  shape.insert(shape.begin() + axis, depth);
  Array result(values.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    Index from = index;
    from.erase(from.begin() + axis);
    double chosen = indices.at(from);
    if (chosen < 0) chosen += static_cast<double>(depth);
    result.at(index) = values.values[chosen == static_cast<double>(index[static_cast<size_t>(axis)])];
  });
  return {Reference(std::move(result), Rule::bits())};
}

const Operator kOperators[] = {
    {"ConstantOfShape", {9, 20, 21, 23, 24, 25}, constant_of_shape},
    {"EyeLike", {9, 22}, eye_like},
    {"Range", {11, 27}, range},
    {"Size", {13, 19, 21, 23, 24, 25}, size},
    {"HannWindow", {17}, window<kHann>},
    {"HammingWindow", {17}, window<kHamming>},
    {"BlackmanWindow", {17}, window<kBlackman>},
    {"MelWeightMatrix", {17}, mel_weights},
    {"OneHot", {11, 28}, one_hot},
};

}  // namespace

std::span<const Operator> generate_operators() {
  return kOperators;
}

}  // namespace backplane::conform
