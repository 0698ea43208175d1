// SPDX-License-Identifier: Apache-2.0
// Operators that keep the shape and compute along axes: softmax and the normalizations.
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status along_axis(Context& c) {
  if (c.ranked(0)) {
    int64_t axis;
    // A scalar has no axis, but its softmax is defined.
    BP_TRY(c.axis(c.integer("axis"), std::max<int64_t>(c.rank(0), 1), axis));
  }
  return same_shape(c);
}

// Checks that an input has one element for each channel.
Status check_channels(Context& c, size_t slot) {
  if (!c.has(slot)) return {};
  BP_TRY(c.expect_rank(slot, 1, 1));
  Scalar channels;
  return c.merge(c.dim(0, 1), c.dim(slot, 0), channels,
                 "the channels of the input and of its scale, bias, mean or variance");
}

Status batch(Context& c) {
  BP_TRY(c.expect_rank(0, 1, BP_MAX_RANK));
  c.copy_shape(0, 0);
  bool channelled = c.ranked(0) && c.rank(0) > 1;
  for (size_t slot = 1; slot <= 4 && channelled; ++slot) BP_TRY(check_channels(c, slot));
  for (size_t slot = 1; slot < c.outputs(); ++slot) c.copy_shape(slot, 2 + slot);
  return {};
}

Status instance(Context& c) {
  BP_TRY(c.expect_rank(0, 3, BP_MAX_RANK));
  for (size_t slot : {1, 2}) BP_TRY(check_channels(c, slot));
  return same_shape(c);
}

Status group(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  for (size_t slot : {1, 2}) BP_TRY(check_channels(c, slot));
  int64_t groups = c.integer("num_groups");
  Scalar channels = c.dim(0, 1);
  if (groups < 1 || (channels.is_number() && channels.value % groups != 0)) {
    return c.fail("num_groups is " + std::to_string(groups) + ", but it must divide the " + c.describe({channels}) +
                  " channels");
  }
  return same_shape(c);
}

Status layer(Context& c) {
  c.copy_shape(0, 0);
  for (size_t slot = 1; slot < c.outputs(); ++slot) {
    int64_t type = c.integer("stash_type");
    BP_TRY(c.set_dtype_number(slot, type ? type : int64_t{BP_DTYPE_FLOAT}));
  }
  if (!c.ranked(0)) return {};
  int64_t axis;
  BP_TRY(c.axis(c.integer("axis"), c.rank(0), axis));
  Shape statistics = c.shape(0);
  for (size_t i = static_cast<size_t>(axis); i < statistics.size(); ++i) statistics[i] = 1;
  for (size_t slot = 1; slot < c.outputs(); ++slot) BP_TRY(c.set_shape(slot, statistics));
  return {};
}

}  // namespace

std::span<const RuleRow> normalization_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "BatchNormalization", batch},
      {"", "GroupNormalization", group},
      {"", "Hardmax", along_axis},
      {"", "InstanceNormalization", instance},
      {"", "LRN", same_shape},
      {"", "LayerNormalization", layer},
      {"", "LogSoftmax", along_axis},
      {"", "LpNormalization", along_axis},
      {"", "MeanVarianceNormalization", same_shape},
      {"", "RMSNormalization", along_axis},
      {"", "Softmax", along_axis},
  };
  return kRows;
}

}  // namespace backplane::ops
