// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/upgrade/upgrades.h"

namespace backplane::ops {

// spatial = 0 means statistics per position instead of per channel: Y = scale · (X − mean) / √(var + ε) + B, where
// scale, B, mean and var have the shape of X without the batch.
Status batch_normalization_spatial(Rewrite& r) {
  const int64_t spatial = r.node.attr("spatial", int64_t{1});
  r.node.erase("spatial");
  if (spatial != 0) return {};
  for (size_t slot = 1; slot < 5; ++slot) {
    if (r.is_read(slot))
      return r.unsupported("spatial is 0, and output " + std::to_string(slot) + ", a statistic, is read");
  }
  const ValueId x = r.node.inputs[0], scale = r.node.inputs[1], bias = r.node.inputs[2], mean = r.node.inputs[3],
                variance = r.node.inputs[4];
  const ValueId epsilon = r.like(r.node.attr("epsilon", 1e-5f), variance);
  const ValueId deviation = r.emit("Sqrt", {r.emit("Add", {variance, epsilon})});
  const ValueId normal = r.emit("Div", {r.emit("Sub", {x, mean}), deviation});
  r.node.inputs = {r.emit("Mul", {normal, scale}), bias};
  r.node.outputs.resize(1);
  r.node.attributes.clear();
  r.become("Add", 14);
  return {};
}

// In older forms, BatchNormalization was in training mode if output 1 or 2, the running mean and variance, was read.
Status batch_normalization_outputs(Rewrite& r) {
  if (r.is_read(3) || r.is_read(4)) return r.unsupported("its outputs saved_mean and saved_var are read");
  const bool training = r.is_read(1) || r.is_read(2);
  r.node.outputs.resize(training ? std::min<size_t>(r.node.outputs.size(), 3) : 1);
  r.node.set(Attribute::of("training_mode", int64_t{training}));
  return {};
}

// Scale and bias had one element per group and now have one per channel. Repeats each element channels / groups times.
Status group_normalization_channels(Rewrite& r) {
  const int64_t groups = r.node.attr("num_groups", int64_t{1});
  const ValueId channels =
      r.emit("Shape", {r.node.inputs[0]}, {Attribute::of("start", int64_t{1}), Attribute::of("end", int64_t{2})});
  const ValueId each = r.emit("Div", {channels, r.constant(std::vector<int64_t>{groups})});
  const ValueId shape =
      r.emit("Concat", {r.constant(std::vector<int64_t>{groups}), each}, {Attribute::of("axis", int64_t{0})});
  for (const size_t slot : {size_t{1}, size_t{2}}) {
    const ValueId column = r.emit("Reshape", {r.node.inputs[slot], r.constant(std::vector<int64_t>{groups, 1})});
    r.set_input(slot, r.emit("Reshape", {r.emit("Expand", {column, shape}), r.constant(std::vector<int64_t>{-1})}));
  }
  return {};
}

// In older forms, Softmax, LogSoftmax and Hardmax treated all dimensions from `axis` on as one.
Status softmax_axis(Rewrite& r) {
  const int64_t axis = r.node.attr("axis", int64_t{1});
  const int32_t rank = r.rank(r.node.inputs[0]);
  r.node.set(Attribute::of("axis", int64_t{-1}));
  if (axis == -1 || (rank >= 0 && axis == rank - 1)) return {};
  const ValueId shape = r.emit("Shape", {r.node.inputs[0]});
  r.set_input(0, r.emit("Flatten", {r.node.inputs[0]}, {Attribute::of("axis", axis)}));
  r.emit_after(0, "Reshape", {shape}, {Attribute::of("allowzero", int64_t{1})});
  return {};
}

}  // namespace backplane::ops
