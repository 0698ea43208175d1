// SPDX-License-Identifier: Apache-2.0
#include "base/counted.h"
#include "ops/infer/rules.h"
#include "ops/infer/window.h"

namespace backplane::ops {
namespace {

Status group_of(Context& c, int64_t& group) {
  group = c.has_attribute("group") ? c.integer("group") : 1;
  if (group < 1 || group > INT32_MAX)
    return c.fail("group is " + std::to_string(group) + ", but it must be from 1 to " + std::to_string(INT32_MAX));
  return {};
}

// Checks that the bias has one element for each output channel.
Status check_bias(Context& c, size_t slot, const Scalar& channels) {
  if (!c.has(slot)) return {};
  BP_TRY(c.expect_rank(slot, 1, 1));
  Scalar merged;
  return c.merge(c.dim(slot, 0), channels, merged, "the extents of B and of the output channels");
}

// X [N, C, spatial...] and W [M, C/group, kernel...] yield [N, M, positions...]. If `kLast`, the channels are the last
// axis of all three: X [N, spatial..., C] and W [M, kernel..., C/group] yield [N, positions..., M].
template <size_t kX, size_t kWeights, size_t kBias, bool kLast = false>
Status convolution(Context& c) {
  BP_TRY(c.expect_rank(kX, 3, BP_MAX_RANK));
  BP_TRY(c.expect_rank(kWeights, 3, BP_MAX_RANK));
  if (!c.ranked(kX) && !c.ranked(kWeights)) return {};
  int64_t rank = c.ranked(kX) ? c.rank(kX) : c.rank(kWeights);
  BP_TRY(c.expect_rank(kWeights, rank, rank));
  size_t spatial = static_cast<size_t>(rank) - 2;
  const int64_t channel_axis = kLast ? rank - 1 : 1, first = kLast ? 1 : 2;
  Window window;
  BP_TRY(Window::read(c, spatial, window));
  Shape kernel;
  BP_TRY(kernel_shape(c, kWeights, spatial, kernel, first));
  int64_t group;
  BP_TRY(group_of(c, group));
  Scalar channels = c.dim(kX, channel_axis), each = c.dim(kWeights, channel_axis), made = c.dim(kWeights, 0);
  Scalar needed = c.math().multiply(each, group);
  if (channels.is_number() && needed.is_number() && channels.value != needed.value) {
    return c.fail("X has " + counted(channels.value, "channel") + ", but W is made for " +
                  std::to_string(needed.value) + " (" + std::to_string(each.value) + " in each of " +
                  std::to_string(group) + " groups)");
  }
  if (made.is_number() && made.value % group != 0) {
    return c.fail("W produces " + std::to_string(made.value) + " channels, which is not a multiple of group " +
                  std::to_string(group));
  }
  if (kBias != BP_NONE) BP_TRY(check_bias(c, kBias, made));
  Shape shape{c.dim(kX, 0)};
  for (size_t i = 0; i < spatial; ++i) {
    shape.push_back(window.positions(c.math(), i, c.dim(kX, static_cast<int64_t>(i) + first), kernel[i]));
  }
  shape.insert(kLast ? shape.end() : shape.begin() + 1, made);
  return c.set_shape(0, shape);
}

// X [N, C, spatial...] and W [C, M/group, kernel...] yield [N, M, positions...].
Status transposed_convolution(Context& c) {
  BP_TRY(c.expect_rank(0, 3, BP_MAX_RANK));
  BP_TRY(c.expect_rank(1, 3, BP_MAX_RANK));
  if (!c.ranked(0)) return {};
  BP_TRY(c.expect_rank(1, c.rank(0), c.rank(0)));
  size_t spatial = static_cast<size_t>(c.rank(0)) - 2;
  Window window;
  BP_TRY(Window::read(c, spatial, window));
  Shape kernel;
  BP_TRY(kernel_shape(c, 1, spatial, kernel));
  int64_t group;
  BP_TRY(group_of(c, group));
  Scalar channels;
  BP_TRY(c.merge(c.dim(0, 1), c.dim(1, 0), channels, "the channels of X and W"));
  Expressions& m = c.math();
  Shape shape{c.dim(0, 0), m.multiply(c.dim(1, 1), group)};
  BP_TRY(check_bias(c, 2, shape[1]));
  const auto& wanted = c.integers("output_shape");
  const auto& extra = c.integers("output_padding");
  if ((!wanted.empty() && wanted.size() != spatial) || (!extra.empty() && extra.size() != spatial)) {
    return c.fail("output_shape and output_padding must have " + std::to_string(spatial) + " entries");
  }
  for (size_t i = 0; i < spatial; ++i) {
    Scalar extent = c.dim(0, static_cast<int64_t>(i) + 2);
    if (!wanted.empty()) {
      shape.push_back(wanted[i]);
      continue;
    }
    if (window.same) {
      shape.push_back(m.multiply(extent, window.strides[i]));
      continue;
    }
    // Output extent: stride * (X - 1) + output_padding + (kernel - 1) * dilation + 1 - pads
    Scalar size = m.multiply(m.subtract(extent, 1), window.strides[i]);
    size = m.add(size, m.add(m.multiply(m.subtract(kernel[i], 1), window.dilations[i]), 1));
    if (!extra.empty()) size = m.add(size, extra[i]);
    shape.push_back(m.subtract(m.subtract(size, window.pads[i]), window.pads[i + spatial]));
  }
  return c.set_shape(0, shape);
}

// Inputs: X [N, C, L] and W [C, 1, k]. Outputs: Y in the shape of X, and the state [N, C, k - 1].
Status causal_convolution(Context& c) {
  BP_TRY(c.expect_rank(0, 3, 3));
  BP_TRY(c.expect_rank(1, 3, 3));
  c.copy_shape(0, 0);
  return c.set_shape(1, {c.dim(0, 0), c.dim(0, 1), c.math().subtract(c.dim(1, 2), 1)});
}

Status convolution_of_integers(Context& c) {
  BP_TRY((convolution<0, 1, BP_NONE>(c)));
  c.set_dtype(0, BP_DTYPE_INT32);
  return {};
}

}  // namespace

Status fused_convolution(Context& c) {
  return convolution<0, 1, 2>(c);
}

Status nhwc_convolution(Context& c) {
  return convolution<0, 1, 2, true>(c);
}

std::span<const RuleRow> convolution_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "CausalConvWithState", causal_convolution}, {"", "Conv", convolution<0, 1, 2>},
      {"", "ConvInteger", convolution_of_integers},    {"", "ConvTranspose", transposed_convolution},
      {"", "DeformConv", convolution<0, 1, 3>},        {"", "QLinearConv", convolution<0, 3, 8>},
  };
  return kRows;
}

}  // namespace backplane::ops
