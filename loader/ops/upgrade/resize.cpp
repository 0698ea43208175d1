// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/tensor.h"
#include "ops/upgrade/upgrades.h"

namespace backplane::ops {

Status upsample_scales(Rewrite& r) {
  r.node.set(Attribute::of(
      "scales", std::vector<float>{1, 1, r.node.attr("height_scale", 1.0f), r.node.attr("width_scale", 1.0f)}));
  r.node.erase("height_scale");
  r.node.erase("width_scale");
  if (r.node.attr("mode", "nearest") == "bilinear") r.node.set(Attribute::of("mode", std::string("linear")));
  return {};
}

Status upsample_input(Rewrite& r) {
  r.set_input(1, r.constant(r.node.find("scales")->floats()));
  r.node.erase("scales");
  return {};
}

Status upsample_resize(Rewrite& r) {
  r.become("Resize", 10);
  return {};
}

// In the old form, coordinates are x / scale. The nearest element is the lower one when enlarging and the upper one
// when shrinking.
Status resize_modes(Rewrite& r) {
  const ValueId scales = r.node.inputs[1];
  r.node.inputs = {r.node.inputs[0], BP_NONE, scales};
  r.node.set(Attribute::of("coordinate_transformation_mode", std::string("asymmetric")));
  if (r.node.attr("mode", "nearest") != "nearest") return {};
  std::string nearest = "floor";
  model::Graph* owner = &r.graph;  // the scales of a node in a subgraph may be a constant of an enclosing graph
  ValueId constant = scales;
  for (; owner->values[constant].outer != BP_NONE; owner = owner->parent) constant = owner->values[constant].outer;
  if (const model::Weight* weight = owner->weight_of(constant)) {
    owner->weights[owner->values[constant].weight].consumed = true;
    const std::vector<double> factors = model::numbers(*weight).value_or(std::vector<double>());
    const bool shrinks = std::any_of(factors.begin(), factors.end(), [](double f) { return f < 1; });
    const bool grows = std::any_of(factors.begin(), factors.end(), [](double f) { return f > 1; });
    if (shrinks && grows) return r.unsupported("its mode is nearest, and its scales grow one axis and shrink another");
    if (shrinks) nearest = "ceil";
  } else {
    r.note("Resize of opset 10 or older reads its scales from another node: treated as upsampling");
  }
  r.node.set(Attribute::of("nearest_mode", std::move(nearest)));
  return {};
}

// tf_half_pixel_for_nn has coordinates t = (x + ½) / scale and no newer equivalent; half_pixel has t − ½. Therefore ⌊t⌋
// is half_pixel rounded to nearest with ties upwards, and t rounded to nearest with ties downwards is ⌈half_pixel⌉.
Status resize_tf_half_pixel(Rewrite& r) {
  if (r.node.attr("coordinate_transformation_mode", "") != "tf_half_pixel_for_nn") return {};
  const std::string nearest = r.node.attr("nearest_mode", "");
  if (r.node.attr("mode", "nearest") != "nearest" || (nearest != "floor" && nearest != "round_prefer_floor")) {
    return r.unsupported(
        "coordinate_transformation_mode tf_half_pixel_for_nn needs mode nearest, and nearest_mode floor or "
        "round_prefer_floor");
  }
  r.node.set(Attribute::of("coordinate_transformation_mode", std::string("half_pixel")));
  r.node.set(Attribute::of("nearest_mode", std::string(nearest == "floor" ? "round_prefer_ceil" : "ceil")));
  return {};
}

}  // namespace backplane::ops
