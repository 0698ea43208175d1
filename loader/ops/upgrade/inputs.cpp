// SPDX-License-Identifier: Apache-2.0
#include <cfloat>

#include "ops/upgrade/upgrades.h"

namespace backplane::ops {

Status axes_input(Rewrite& r) {
  r.to_input("axes", 1);
  return {};
}

Status clip_inputs(Rewrite& r) {
  const auto bound = [&r](const char* name, size_t slot, float none) {
    const float value = r.node.attr(name, none);
    r.node.erase(name);
    if (value != none) r.set_input(slot, r.like(value, r.node.inputs[0]));
  };
  bound("min", 1, -FLT_MAX);
  bound("max", 2, FLT_MAX);
  return {};
}

Status dft_axis(Rewrite& r) {
  r.set_input(2, r.scalar(r.node.attr("axis", int64_t{1})));
  r.node.erase("axis");
  return {};
}

Status dropout_inputs(Rewrite& r) {
  const float ratio = r.node.attr("ratio", 0.5f);
  r.node.erase("ratio");
  r.set_input(1, r.graph.add_constant(r.node.name + "/ratio#" + std::to_string(r.model.next_id), BP_DTYPE_FLOAT, {},
                                      &ratio, sizeof ratio, r.model.next_id));
  ++r.model.next_id;
  return {};
}

// In older forms, the mask has the data's type; in newer forms, it is bool.
Status dropout_mask(Rewrite& r) {
  if (r.is_read(1)) r.emit_after(1, "CastLike", {r.node.inputs[0]});
  return {};
}

Status pad_inputs(Rewrite& r) {
  const float value = r.node.attr("value", 0.0f);
  r.node.erase("value");
  r.to_input("pads", 1);
  if (value != 0) r.set_input(2, r.like(value, r.node.inputs[0]));
  return {};
}

Status reshape_input(Rewrite& r) {
  if (!r.node.find("shape")) return r.invalid("attribute 'shape' is missing");
  r.node.erase("consumed_inputs");
  r.to_input("shape", 1);
  return {};
}

Status slice_inputs(Rewrite& r) {
  r.to_input("starts", 1);
  r.to_input("ends", 2);
  r.to_input("axes", 3);
  return {};
}

Status split_input(Rewrite& r) {
  r.to_input("split", 1);
  return {};
}

// Turns `tiles` and `axis` into `repeats`: 1 for all axes except `axis`, which is repeated `tiles` times.
Status tile_repeats(Rewrite& r) {
  const Attribute to_int64 = Attribute::of("to", int64_t{BP_DTYPE_INT64});
  const ValueId one = r.constant(std::vector<int64_t>{1});
  const ValueId tiles = r.emit("Reshape", {r.emit("Cast", {r.node.inputs[1]}, {to_int64}), one});
  const ValueId axis = r.emit("Reshape", {r.emit("Cast", {r.node.inputs[2]}, {to_int64}), one});
  const ValueId rank = r.emit("Reshape", {r.rank_of(r.node.inputs[0]), one});
  const ValueId ones = r.emit("Expand", {one, rank});
  r.node.inputs = {r.node.inputs[0], r.emit("ScatterElements", {ones, axis, tiles})};
  return {};
}

Status top_k_input(Rewrite& r) {
  r.set_input(1, r.constant(std::vector<int64_t>{r.node.attr("k", int64_t{0})}));
  r.node.erase("k");
  return {};
}

}  // namespace backplane::ops
