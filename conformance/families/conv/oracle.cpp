// SPDX-License-Identifier: Apache-2.0
// Oracles of convolutions over [batch, channels, spatial…].
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "judge/window.h"

namespace backplane::conform {
namespace {

// Returns the number of groups, which must divide `channels`.
int64_t group_of(const Call& call, int64_t channels) {
  const int64_t group = call.integer("group", 1);
  require(group >= 1 && channels % group == 0,
          "the number of groups is not a positive divisor of the number of channels");
  return group;
}

References conv(const Call& call) {
  const Array &x = call.in(0, 3), &w = call.in(1, 3);  // w: [channels out, channels in / groups, kernel…]
  const Window window(call, x.extents, {w.extents.begin() + 2, w.extents.end()});
  const size_t axes = window.in.size();
  const int64_t group = group_of(call, w.extents[0]), out_per_group = w.extents[0] / group;
  require(x.extents[1] == w.extents[1] * group, "the weights are for another number of channels");
  require(std::equal(window.kernel.begin(), window.kernel.end(), w.extents.begin() + 2, w.extents.end()),
          "kernel_shape differs from the shape of the weights");
  require(x.dtype == w.dtype, "input and weights have different types");
  const std::vector<double>* bias = call.has(2) ? &call.vector(2, w.extents[0]) : nullptr;
  Extents taps = {w.extents.begin() + 1, w.extents.end()}, shape = {x.extents[0], w.extents[0]};
  shape.insert(shape.end(), window.out.begin(), window.out.end());
  require_steps(static_cast<double>(count_of(shape)) * static_cast<double>(count_of(taps)));

  Reference result(Array(x.dtype, shape),
                   Rule::of(Rule::kDot, static_cast<double>(count_of(taps) + (call.has(2) ? 1 : 0))));
  Index from(axes + 2), weight(axes + 2);
  for_each_index(shape, [&](const Index& index) {
    double sum = bias != nullptr ? (*bias)[static_cast<size_t>(index[1])] : 0, scale = std::fabs(sum);
    from[0] = index[0];
    weight[0] = index[1];
    for_each_index(taps, [&](const Index& tap) {
      from[1] = index[1] / out_per_group * w.extents[1] + tap[0];
      for (size_t i = 0; i < axes; ++i) {
        from[i + 2] = window.source(i, index[i + 2], tap[i + 1]);
        if (from[i + 2] < 0) return;
      }
      std::copy(tap.begin(), tap.end(), weight.begin() + 1);
      const double product = x.at(from) * w.at(weight);
      sum += product;
      scale += std::fabs(product);
    });
    result.value.at(index) = sum;
    result.scale.push_back(scale);
  });
  return {result};
}

// The transpose of `conv`: every input element contributes to a window of the output.
References conv_transpose(const Call& call) {
  const Array &x = call.in(0, 3), &w = call.in(1, 3);  // w: [channels in, channels out / groups, kernel…]
  require(x.rank() == w.rank() && x.dtype == w.dtype, "input and weights differ in rank or type");
  require(x.extents[1] == w.extents[0], "the weights are for another number of channels");
  require(call.text("auto_pad").empty() || call.text("auto_pad") == "NOTSET", "the oracle supports explicit pads only");
  require(call.ints("output_shape").empty(), "the oracle does not support output_shape");
  const size_t axes = x.extents.size() - 2;
  const int64_t group = group_of(call, x.extents[1]), in_per_group = x.extents[1] / group, out_per_group = w.extents[1];
  const Extents strides = call.ints("strides", Extents(axes, 1)), dilations = call.ints("dilations", Extents(axes, 1)),
                pads = call.ints("pads", Extents(2 * axes, 0)), extra = call.ints("output_padding", Extents(axes, 0));
  require(strides.size() == axes && dilations.size() == axes && pads.size() == 2 * axes && extra.size() == axes,
          "strides, dilations, pads or output_padding do not fit the number of spatial axes");
  for (const Extents* numbers : {&strides, &dilations, &pads, &extra}) {
    for (const int64_t number : *numbers) {
      require(number >= -kMaxElements && number <= kMaxElements,
              "a stride, dilation, pad or output_padding is out of range");
    }
  }
  Extents shape = {x.extents[0], out_per_group * group};
  for (size_t i = 0; i < axes; ++i) {
    shape.push_back((x.extents[i + 2] - 1) * strides[i] + extra[i] + (w.extents[i + 2] - 1) * dilations[i] + 1 -
                    pads[i] - pads[axes + i]);
  }
  require_steps(static_cast<double>(x.count()) * static_cast<double>(w.count()));
  const std::vector<double>* bias = call.has(2) ? &call.vector(2, shape[1]) : nullptr;
  const auto terms = static_cast<double>(in_per_group * count_of({w.extents.begin() + 2, w.extents.end()}));
  Reference result(Array(x.dtype, shape), Rule::of(Rule::kDot, terms + (call.has(2) ? 1 : 0)));
  Array scale(x.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    if (bias == nullptr) return;
    result.value.at(index) = (*bias)[static_cast<size_t>(index[1])];
    scale.at(index) = std::fabs(result.value.at(index));
  });
  for_each_index(x.extents, [&](const Index& from) {
    Extents taps = {w.extents.begin() + 1, w.extents.end()};
    for_each_index(taps, [&](const Index& tap) {
      Index to = {from[0], from[1] / in_per_group * out_per_group + tap[0]}, weight = {from[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      for (size_t i = 0; i < axes; ++i) {
        to.push_back(from[i + 2] * strides[i] + tap[i + 1] * dilations[i] - pads[i]);
        if (to.back() < 0 || to.back() >= shape[i + 2]) return;
      }
      const double product = x.at(from) * w.at(weight);
      result.value.at(to) += product;
      scale.at(to) += std::fabs(product);
    });
  });
  result.scale = scale.values;
  return {result};
}

const Operator kOperators[] = {
    {"Conv", {11, 22}, conv},
    {"ConvTranspose", {11, 22}, conv_transpose},
};

}  // namespace

std::span<const Operator> conv_operators() {
  return kOperators;
}

}  // namespace backplane::conform
