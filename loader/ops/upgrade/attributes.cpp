// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "base/names.h"
#include "ops/upgrade/upgrades.h"

namespace backplane::ops {
namespace {

// Converts ASCII letters only. std::tolower depends on the locale: in Turkish it does not convert I, and "INT32" would
// be unknown.
char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

// consumed_inputs listed the inputs that may be overwritten. Newer forms do not have this attribute.
Status no_consumed_inputs(Rewrite& r) {
  r.node.erase("consumed_inputs");
  return {};
}

// output_sequence stated whether Y is computed. Now Y is computed if the output is present.
Status no_output_sequence(Rewrite& r) {
  r.node.erase("output_sequence");
  return {};
}

// is_test = 0, the default, meant training. But many models for inference were exported without setting is_test.
Status no_is_test(Rewrite& r) {
  if (r.node.attr("is_test", int64_t{0}) == 0) {
    r.note(r.node.op_type + " of opset 6 or older does not set is_test: run as in inference");
  } else if (!r.is_read(1) && !r.is_read(2) && !r.is_read(3) && !r.is_read(4)) {
    r.node.outputs.resize(std::min<size_t>(r.node.outputs.size(), 1));
  }
  r.node.erase("is_test");
  return {};
}

Status cast_to_number(Rewrite& r) {
  std::string name = r.node.attr("to", "");
  std::transform(name.begin(), name.end(), name.begin(), ascii_lower);
  const bp_dtype_t dtype = dtype_of(name);
  if (dtype == BP_DTYPE_UNDEFINED)
    return r.invalid("attribute 'to' is " + in_quotes(name) + ", which is not a data type");
  r.node.set(Attribute::of("to", int64_t{dtype}));
  return {};
}

Status concat_axis(Rewrite& r) {
  r.node.set(Attribute::of("axis", r.node.attr("axis", int64_t{1})));
  return {};
}

// Input C of Gemm now broadcasts without an attribute.
Status gemm_broadcast(Rewrite& r) {
  r.node.erase("broadcast");
  return {};
}

Status grid_sample_modes(Rewrite& r) {
  const std::string mode = r.node.attr("mode", "bilinear");
  if (mode == "bilinear") r.node.set(Attribute::of("mode", std::string("linear")));
  if (mode == "bicubic") r.node.set(Attribute::of("mode", std::string("cubic")));
  return {};
}

// The default in older forms was misspelled as "foward".
Status gru_direction(Rewrite& r) {
  if (r.node.attr("direction", "") == "foward") r.node.set(Attribute::of("direction", std::string("forward")));
  return {};
}

Status lp_whole_p(Rewrite& r) {
  const float p = r.node.attr("p", 2.0f);
  if (p != std::floor(p) || std::abs(p) > 1e6f)
    return r.unsupported("p = " + std::to_string(p) + " is not a whole number from -1000000 to 1000000");
  r.node.set(Attribute::of("p", static_cast<int64_t>(p)));
  if (r.node.op_type == "LpPool" && !r.node.find("kernel_shape"))
    return r.invalid("attribute 'kernel_shape' is missing");
  return {};
}

Status pad_pads(Rewrite& r) {
  r.node.set(Attribute::of("pads", r.node.find("paddings")->ints()));
  r.node.erase("paddings");
  return {};
}

Status roi_align_mode(Rewrite& r) {
  r.node.set(Attribute::of("coordinate_transformation_mode", std::string("output_half_pixel")));
  return {};
}

Status scatter_elements(Rewrite& r) {
  r.become("ScatterElements", 11);
  return {};
}

// In older forms, the lengths of the pieces could already be input 1, with the data's type. Split-13 requires int64.
Status split_axis(Rewrite& r) {
  if (!r.node.find("axis")) r.node.set(Attribute::of("axis", int64_t{0}));
  if (r.node.input(1) != BP_NONE) {
    r.node.erase("split");
    r.set_input(1, r.emit("Cast", {r.node.inputs[1]}, {Attribute::of("to", int64_t{BP_DTYPE_INT64})}));
  }
  return {};
}

Status split_num_outputs(Rewrite& r) {
  if (r.node.input(1) == BP_NONE) r.node.set(Attribute::of("num_outputs", static_cast<int64_t>(r.node.outputs.size())));
  return {};
}

}  // namespace backplane::ops
