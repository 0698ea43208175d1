// SPDX-License-Identifier: Apache-2.0
#include "view/form_limits.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/dtype.h"
#include "ir/tensor.h"
#include "ops/schema/schema.h"

namespace backplane::model {
namespace {

// The fit for a limit that ONNX's text on the older form states.
Fit fits_if(bool condition) {
  return condition ? Fit::kAlways : Fit::kNever;
}

// The fit for a limit that ONNX's text on the older form leaves open.
Fit open_unless(bool condition) {
  return condition ? Fit::kAlways : Fit::kUnknown;
}

// Null if the input is omitted.
const Type* input_type(const Candidate& c, size_t slot) {
  const ValueId value = c.node.input(slot);
  return value == BP_NONE ? nullptr : &c.graph.values[value].type;
}

// The constant that input `slot` has now; null if it is omitted or not a constant.
const Weight* constant(const Candidate& c, size_t slot) {
  const Graph* graph = &c.graph;
  ValueId value = c.node.input(slot);
  while (value != BP_NONE && graph->values[value].outer != BP_NONE && graph->parent) {
    value = graph->values[value].outer;
    graph = graph->parent;
  }
  const Weight* weight = graph->weight_of(value);
  if (!weight || graph->parent) return weight;
  const auto replaced = c.replaced.find(graph->values[value].weight);
  return replaced == c.replaced.end() ? weight : replaced->second.get();
}

std::vector<int64_t> integer_list(const Node& node, std::string_view attribute) {
  const Attribute* found = node.find(attribute);
  return found ? found->ints() : std::vector<int64_t>();
}

bool none_negative(const std::vector<int64_t>& values) {
  return std::ranges::none_of(values, [](int64_t value) { return value < 0; });
}

// Whether no element of input `slot` is negative.
Fit input_not_negative(const Candidate& c, size_t slot) {
  constexpr bp_dtype_set_t kUnsigned =
      1u << BP_DTYPE_UINT8 | 1u << BP_DTYPE_UINT16 | 1u << BP_DTYPE_UINT32 | 1u << BP_DTYPE_UINT64;
  const Type* type = input_type(c, slot);
  if (!type || (type->dtype < 64 && (kUnsigned >> type->dtype & 1))) return Fit::kAlways;
  const Weight* weight = constant(c, slot);
  if (!weight) return Fit::kUnknown;
  if (const auto integers = model::integers(*weight)) return fits_if(none_negative(*integers));
  const auto numbers = model::numbers(*weight);
  return !numbers ? Fit::kUnknown : fits_if(std::ranges::none_of(*numbers, [](double number) { return number < 0; }));
}

Fit same_extent(const bp_dim_t& a, const bp_dim_t& b) {
  if (a.extent >= 0 && b.extent >= 0) return fits_if(a.extent == b.extent);
  return a.extent < 0 && b.extent < 0 && a.symbol != BP_NONE && a.symbol == b.symbol ? Fit::kAlways : Fit::kUnknown;
}

Fit same_shape(const Type& a, const Type& b) {
  if (a.rank < 0 || b.rank < 0) return Fit::kUnknown;
  Fit fit = fits_if(a.rank == b.rank);
  for (int32_t i = 0; i < a.rank && fit != Fit::kNever; ++i) fit = std::min(fit, same_extent(a.dims[i], b.dims[i]));
  return fit;
}

// ONNX's text on the older form describes axes from kLeast on, and says nothing about others.
template <int64_t kLeast>
Fit axis_at_least(const Candidate& c) {
  return open_unless(c.node.attr("axis", kLeast) >= kLeast);
}

Fit flattens_from_front(const Candidate& c) {
  return fits_if(c.node.attr("axis", int64_t{0}) >= 0);
}

Fit one_mask(const Candidate& c) {
  const Type *mask = input_type(c, 3), *key = input_type(c, 1);
  if (!mask) return Fit::kAlways;
  if (c.node.attr("is_causal", int64_t{0}) != 0) return Fit::kNever;
  // Newer forms extend a mask that is shorter than the keys.
  bp_dim_t total{-1, BP_NONE, 0};
  if (!input_type(c, 4)) {
    if (key->rank >= 3) total = key->dims[static_cast<size_t>(key->rank) - 2];
  } else if (const ValueId present = c.node.output(1); present != BP_NONE && c.graph.values[present].type.rank == 4) {
    total = c.graph.values[present].type.dims[2];
  }
  return mask->rank > 0 ? same_extent(mask->dims.back(), total) : Fit::kUnknown;
}

// Whether each window starts in the input or in the padding before the input. Older forms also count windows that start
// in the padding after the input.
Fit windows_start_inside(const Candidate& c) {
  const std::string auto_pad = c.node.attr("auto_pad", "");
  if (c.node.attr("ceil_mode", int64_t{0}) == 0 || auto_pad.starts_with("SAME_")) return Fit::kAlways;
  const Type* x = input_type(c, 0);
  const auto kernels = integer_list(c.node, "kernel_shape");
  auto strides = integer_list(c.node, "strides"), dilations = integer_list(c.node, "dilations");
  auto pads = integer_list(c.node, "pads");
  if (strides.empty()) strides.assign(kernels.size(), 1);
  if (dilations.empty()) dilations.assign(kernels.size(), 1);
  if (pads.empty() || auto_pad == "VALID") pads.assign(2 * kernels.size(), 0);
  // Inference reports an error where this does not hold.
  const auto fits_int32 = [](const std::vector<int64_t>& values, int64_t least) {
    return std::ranges::all_of(values, [&](int64_t value) { return value >= least && value <= INT32_MAX; });
  };
  if (strides.size() != kernels.size() || dilations.size() != kernels.size() || pads.size() != 2 * kernels.size() ||
      !fits_int32(kernels, 1) || !fits_int32(strides, 1) || !fits_int32(dilations, 1) || !fits_int32(pads, INT32_MIN))
    return Fit::kUnknown;
  Fit fit = Fit::kAlways;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int64_t stride = strides[i], reach = (kernels[i] - 1) * dilations[i] + 1;
    const int64_t begin = pads[i], end = pads[i + kernels.size()];
    // The last window starts at the first multiple of the stride from extent + begin + end - reach on: at most stride-1
    // after this number, so before extent + begin if stride-1 < reach - end.
    if (stride - 1 < reach - end) continue;
    if (!x || x->rank != static_cast<int32_t>(kernels.size() + 2) || x->dims[i + 2].extent < 0) {
      fit = Fit::kUnknown;
      continue;
    }
    const int64_t rest = (x->dims[i + 2].extent % stride + (begin + end - reach) % stride) % stride;  // of either sign
    if ((stride - rest) % stride >= reach - end) return Fit::kNever;
  }
  return fit;
}

template <class T>
bool distinct(const std::vector<T>& keys) {
  return std::set<T>(keys.begin(), keys.end()).size() == keys.size();
}

// Whether no key is repeated and none is NaN. Older forms leave the result of repeated keys open, and compare NaN by
// bits.
Fit keys_are_distinct(const Candidate& c) {
  for (const Attribute& attribute : c.node.attributes) {
    if (attribute.name == "keys_strings" && !distinct(attribute.strings())) return Fit::kUnknown;
    if (attribute.name == "keys_int64s" && !distinct(attribute.ints())) return Fit::kUnknown;
    if (attribute.name != "keys_floats") continue;
    if (std::ranges::any_of(attribute.floats(), [](float key) { return std::isnan(key); })) return Fit::kUnknown;
    if (!distinct(attribute.floats())) return Fit::kUnknown;
  }
  return Fit::kAlways;
}

Fit equal_shapes(const Candidate& c) {
  Fit fit = Fit::kAlways;
  for (size_t slot = 1; slot < c.node.inputs.size(); ++slot)
    fit = std::min(fit, same_shape(*input_type(c, slot), *input_type(c, 0)));
  return fit;
}

Fit branches_have_equal_shapes(const Candidate& c) {
  const Graph& taken = *c.graph.subgraphs[c.node.find("then_branch")->indices()[0]];
  const Graph& other = *c.graph.subgraphs[c.node.find("else_branch")->indices()[0]];
  Fit fit = Fit::kAlways;
  for (size_t i = 0; i < std::min(taken.outputs.size(), other.outputs.size()); ++i) {
    const ValueId a = taken.outputs[i], b = other.outputs[i];
    fit = a == BP_NONE || b == BP_NONE ? Fit::kUnknown
                                       : std::min(fit, same_shape(taken.values[a].type, other.values[b].type));
    if (fit == Fit::kNever) return fit;
  }
  return fit;
}

// Whether no pads are computed. Both forms say how computed pads are divided between begin and end, but the newer form
// exchanged the two cases of auto_pad.
Fit pads_are_given(const Candidate& c) {
  const std::string auto_pad = c.node.attr("auto_pad", "");
  return c.node.find("output_shape") || auto_pad.starts_with("SAME_") ? Fit::kUnknown : Fit::kAlways;
}

// From version 24 of Cast and CastLike on, saturation turns infinity into the largest number in the FNUZ types too.
// Before, infinity became NaN in these types.
Fit infinity_is_saturated_alike(const Candidate& c) {
  const ValueId y = c.node.output(0);
  const bp_dtype_t to = y == BP_NONE ? bp_dtype_t{BP_DTYPE_UNDEFINED} : c.graph.values[y].type.dtype;
  const bool changed = to == BP_DTYPE_FLOAT8E4M3FNUZ || to == BP_DTYPE_FLOAT8E5M2FNUZ;
  return changed && c.node.attr("saturate", int64_t{1}) != 0 ? Fit::kUnknown : Fit::kAlways;
}

Fit scale_is_scalar(const Candidate& c) {
  const Type& scale = *input_type(c, 1);
  if (scale.rank < 0) return Fit::kUnknown;
  Fit fit = Fit::kAlways;
  for (const bp_dim_t& dim : scale.dims) fit = std::min(fit, same_extent(dim, {1, BP_NONE, 0}));
  return fit;
}

Fit no_max_or_min(const Candidate& c) {
  const std::string reduction = c.node.attr("reduction", "none");
  return fits_if(reduction != "max" && reduction != "min");
}

// Version 1 of Gather describes negative axes. Of indices it says only that they must be in bounds.
Fit gathers_from_front(const Candidate& c) {
  return open_unless(input_not_negative(c, 1) == Fit::kAlways);
}

// Older forms set no element where an index is negative.
Fit hot_from_front(const Candidate& c) {
  return std::min(axis_at_least<-1>(c), input_not_negative(c, 0));
}

Fit slices_axes_from_front(const Candidate& c) {
  return open_unless(input_not_negative(c, 3) == Fit::kAlways);
}

Fit scans_axes_from_front(const Candidate& c) {
  return open_unless(none_negative(integer_list(c.node, "scan_input_axes")) &&
                     none_negative(integer_list(c.node, "scan_output_axes")));
}

// Older forms compute the remainder of real numbers only as C's fmod does (fmod 1). Their texts allow fmod 1 for no
// other numbers, but ONNX's own test data uses it for integers too.
Fit divides_as_then(const Candidate& c) {
  constexpr bp_dtype_set_t kReal =
      1u << BP_DTYPE_FLOAT | 1u << BP_DTYPE_DOUBLE | 1u << BP_DTYPE_FLOAT16 | 1u << BP_DTYPE_BFLOAT16;
  const bp_dtype_t dtype = input_type(c, 0)->dtype;
  return fits_if(c.node.attr("fmod", int64_t{0}) != 0 || dtype >= 64 || !(kReal >> dtype & 1));
}

// Whether each number is shifted by fewer bits than it has. Older texts do not say what other shifts return.
Fit shifts_some_bits(const Candidate& c) {
  const Weight* weight = constant(c, 1);
  const auto amounts = weight ? model::numbers(*weight) : std::nullopt;
  return open_unless(amounts && std::ranges::all_of(*amounts, [&](double amount) {
                       return amount >= 0 && amount < dtype_bits(weight->dtype);
                     }));
}

Fit does_not_wrap(const Candidate& c) {
  return fits_if(c.node.attr("mode", "") != "wrap");
}

Fit no_symmetric_half_pixel(const Candidate& c) {
  return fits_if(c.node.attr("coordinate_transformation_mode", "") != "half_pixel_symmetric");
}

// Sorted by domain, operator and version. There are no limits where the upgrade to `version` changes the node, because
// such nodes have no older form.
constexpr Limit kLimits[] = {
    {"", "ArgMax", 11, axis_at_least<0>, "a negative axis"},
    {"", "ArgMin", 11, axis_at_least<0>, "a negative axis"},
    {"", "Attention", 24, one_mask, "a mask that is combined with is_causal or may be shorter than the keys"},
    {"", "AveragePool", 22, windows_start_inside, "a window that may begin in the padding at the end"},
    {"", "BitShift", 28, shifts_some_bits, "a shift amount that may not be below the number of bits"},
    {"", "Cast", 24, infinity_is_saturated_alike, "infinity saturated to a type that has none"},
    {"", "CastLike", 24, infinity_is_saturated_alike, "infinity saturated to a type that has none"},
    {"", "Compress", 11, axis_at_least<0>, "a negative axis"},
    {"", "Concat", 11, axis_at_least<0>, "a negative axis"},
    {"", "ConvTranspose", 11, pads_are_given, "padding that is computed from output_shape or auto_pad"},
    {"", "DequantizeLinear", 13, scale_is_scalar, "a scale that may have more than one element"},
    {"", "Flatten", 11, flattens_from_front, "a negative axis"},
    {"", "Gather", 11, gathers_from_front, "an index that may be negative"},
    {"", "If", 11, branches_have_equal_shapes, "an output whose shape may differ between the branches"},
    {"", "Max", 8, equal_shapes, "an input shape that may differ from the others"},
    {"", "MaxPool", 22, windows_start_inside, "a window that may begin in the padding at the end"},
    {"", "Mean", 8, equal_shapes, "an input shape that may differ from the others"},
    {"", "Min", 8, equal_shapes, "an input shape that may differ from the others"},
    {"", "Mod", 28, divides_as_then, "fmod 0 for floating-point numbers"},
    {"", "OneHot", 11, hot_from_front, "an index that may be negative or an axis below -1"},
    {"", "Pad", 19, does_not_wrap, "mode 'wrap'"},
    {"", "QuantizeLinear", 13, scale_is_scalar, "a scale that may have more than one element"},
    {"", "Resize", 19, no_symmetric_half_pixel, "coordinate_transformation_mode 'half_pixel_symmetric'"},
    {"", "Scan", 11, scans_axes_from_front, "a negative scan axis"},
    {"", "ScatterElements", 18, no_max_or_min, "reduction 'max' or 'min'"},
    {"", "ScatterND", 18, no_max_or_min, "reduction 'max' or 'min'"},
    {"", "Slice", 11, slices_axes_from_front, "an axis that may be negative"},
    {"", "Sum", 8, equal_shapes, "an input shape that may differ from the others"},
    {"", "TopK", 11, axis_at_least<-1>, "an axis below -1"},
    {"ai.onnx.ml", "LabelEncoder", 4, keys_are_distinct, "a repeated key or a key of NaN"},
};

}  // namespace

std::span<const Limit> all_limits() {
  return kLimits;
}

const Limit* find_limit(const ops::Schema& to) {
  static const auto kBySchema = [] {
    std::unordered_map<const ops::Schema*, const Limit*> map;
    for (const Limit& limit : kLimits) map.emplace(ops::find_schema(limit.domain, limit.op, limit.version), &limit);
    return map;
  }();
  const auto found = kBySchema.find(&to);
  return found == kBySchema.end() ? nullptr : found->second;
}

}  // namespace backplane::model
