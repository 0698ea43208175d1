// SPDX-License-Identifier: Apache-2.0
#include "rewrite.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace onnxifi_backend {
namespace {

using Ints = std::vector<int64_t>;

std::string needs_constant(size_t slot) {
  return "which needs a constant as input " + std::to_string(slot) + ", and here this input is not a constant";
}

bool is_all(const Ints& values, int64_t one) {
  return std::all_of(values.begin(), values.end(), [one](int64_t value) { return value == one; });
}

bool has_value(const Attribute& attribute, std::string_view neutral) {
  if (neutral == "ones") return is_all(attribute.ints, 1);
  if (attribute.type == BP_ATTR_STRING) return attribute.texts[0] == neutral;
  return attribute.ints.size() == 1 && std::to_string(attribute.ints[0]) == neutral;
}

// Copies the integers of a constant input, if present, to an attribute. Returns false if the input is computed.
bool to_attribute(Rewrite& r, size_t slot, std::string_view name) {
  if (!r.node.input(slot)) return true;
  const auto values = r.ints(slot);
  if (!values) return false;
  r.node.set(name, *values);
  return true;
}

bool have_one_type(const Rewrite& r, std::initializer_list<size_t> slots) {
  const auto dtype = [&](size_t slot) { return r.node.input(slot).value.dtype(); };
  return std::all_of(slots.begin(), slots.end(), [&](size_t slot) { return dtype(slot) == dtype(*slots.begin()); });
}

// The element of a constant FLOAT input, `otherwise` if the input is omitted; nullopt if the input is anything else.
std::optional<float> number(Rewrite& r, size_t slot, float otherwise) {
  if (!r.node.input(slot)) return otherwise;
  const auto values = r.floats(slot);
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

// The number that the bits of a FLOAT16 or BFLOAT16 encode.
double number_of(uint16_t bits, bp_dtype_t dtype) {
  const int fraction_bits = dtype == BP_DTYPE_FLOAT16 ? 10 : 7, bias = dtype == BP_DTYPE_FLOAT16 ? 15 : 127;
  const int one = 1 << fraction_bits, fraction = bits & (one - 1), exponent = (bits & 0x7FFF) >> fraction_bits;
  double magnitude =
      std::ldexp(exponent == 0 ? fraction : one + fraction, std::max(exponent, 1) - bias - fraction_bits);
  if (exponent == 2 * bias + 1) magnitude = fraction == 0 ? HUGE_VAL : NAN;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The elements of a weight. Also reads 16-bit floats, which the SDK does not read as numbers.
std::vector<double> numbers(const Value& weight) {
  const bp_dtype_t dtype = weight.dtype();
  const void* const data = backplane::sdk::weight_data(weight);
  const uint64_t bytes = weight.weight()->bytes;
  if (dtype != BP_DTYPE_FLOAT16 && dtype != BP_DTYPE_BFLOAT16) return backplane::sdk::host_numbers(dtype, data, bytes);
  std::vector<double> values;
  for (const uint16_t bits : backplane::sdk::converted<uint16_t, uint16_t>(data, bytes))
    values.push_back(number_of(bits, dtype));
  return values;
}

// Whether the only element of the constant input `a` is greater than that of the constant input `b` of the same type.
// False if an input is computed or omitted, or has another number of elements.
bool is_greater(const Rewrite& r, size_t a, size_t b) {
  const Value first = r.node.input(a).value, second = r.node.input(b).value;
  if (!first || !second || first.weight() == nullptr || second.weight() == nullptr) return false;
  if (first.dtype() != second.dtype()) return false;
  const auto compare = [&](auto read) {
    const auto x = read(first), y = read(second);
    return x.size() == 1 && y.size() == 1 && x.front() > y.front();
  };
  // A double cannot represent every 64-bit integer.
  if (first.dtype() == BP_DTYPE_INT64)
    return compare([](const Value& v) { return *backplane::sdk::weight_elements<int64_t>(v, BP_DTYPE_INT64); });
  if (first.dtype() == BP_DTYPE_UINT64)
    return compare([](const Value& v) { return *backplane::sdk::weight_elements<uint64_t>(v, BP_DTYPE_UINT64); });
  return compare(numbers);
}

}  // namespace

std::optional<Ints> Rewrite::ints(size_t slot) const {
  const Operand operand = node.input(slot);
  if (operand.value) return backplane::sdk::weight_ints(operand.value);
  const Constant* const constant = operand.constant;
  if (constant == nullptr || (constant->dtype != BP_DTYPE_INT32 && constant->dtype != BP_DTYPE_INT64))
    return std::nullopt;
  return backplane::sdk::host_ints(constant->dtype, constant->bytes.data(), constant->bytes.size());
}

std::optional<std::vector<float>> Rewrite::floats(size_t slot) const {
  return backplane::sdk::weight_elements<float>(node.input(slot).value, BP_DTYPE_FLOAT);
}

void Rewrite::set_ints(size_t slot, const Ints& values) const {
  const Operand from = node.input(slot);
  const bool is_short = from.value && from.value.dtype() == BP_DTYPE_INT32;
  std::string bytes;
  for (const int64_t value : values) {
    const auto narrow = static_cast<int32_t>(value);
    bytes.append(is_short ? reinterpret_cast<const char*>(&narrow) : reinterpret_cast<const char*>(&value),
                 is_short ? sizeof narrow : sizeof value);
  }
  Ints extents = from.value ? from.value.extents() : from.constant->extents;
  node.inputs[slot] = {
      {}, &onnx_model.add_constant(is_short ? BP_DTYPE_INT32 : BP_DTYPE_INT64, std::move(extents), std::move(bytes))};
}

// ---- attributes ----------------------------------------------------------------------------------------------------

std::string unchanged(Rewrite&) {
  return {};
}

std::string drop(Rewrite& r) {
  const Attribute* const found = r.node.find(r.step.attribute);
  if (found == nullptr) return {};
  if (!has_value(*found, r.step.neutral)) {
    return r.refuse("which has no " + std::string(r.step.attribute) + " and works as with " +
                    std::string(r.step.neutral == "ones" ? "1 for each dimension" : r.step.neutral));
  }
  r.node.erase(r.step.attribute);
  return {};
}

std::string ignore(Rewrite& r) {
  r.node.erase(r.step.attribute);
  return {};
}

std::string positive_axes(Rewrite& r) {
  // For these two operators, axes refer to dimensions of the output; for all others, to dimensions of the input.
  const bool of_output = r.node.op == "Unsqueeze" || r.node.op == "OneHot";
  const Value value = of_output ? r.node.outputs[0].value : r.node.input(0).value;
  const int64_t rank = value.rank();
  for (const char* const name : {"axis", "axes"}) {
    Attribute* const found = r.node.find(name);
    if (found == nullptr) continue;
    for (int64_t& axis : found->ints) {
      if (axis < 0) axis += rank;
    }
    if (r.node.op == "Unsqueeze") std::sort(found->ints.begin(), found->ints.end());  // in any order since version 11
  }
  return {};
}

std::string equal_shapes(Rewrite& r) {
  for (size_t i = 1; i < r.node.inputs.size(); ++i) {
    if (r.extents(i) != r.extents(0))
      return r.refuse("which does not broadcast: input " + std::to_string(i) + " must have the shape of input 0");
  }
  return {};
}

std::string equal_types(Rewrite& r) {
  return have_one_type(r, {0, 1}) ? std::string()
                                  : r.refuse("which has one type for both inputs, and here they have two");
}

std::string attention_24(Rewrite& r) {
  if (r.node.input(6)) return r.refuse("which has no input nonpad_kv_seqlen");
  r.node.drop_inputs(6);
  if (!r.node.input(3)) return {};
  if (r.node.number("is_causal", 0) != 0)
    return r.refuse("which has either a mask or is_causal, and this node has both");
  const Ints keys = r.extents(1), mask = r.extents(3);
  int64_t total = keys.at(keys.size() - 2);
  if (r.node.input(4)) total += r.extents(4).at(2);
  if (mask.empty() || mask.back() != total)
    return r.refuse("whose mask covers every key: its last extent must be " + std::to_string(total));
  return {};
}

std::string bit_shift_28(Rewrite& r) {
  const Value amounts = r.node.input(1).value;
  const uint32_t bits = backplane::view::dtype_bits(amounts.dtype());
  if (amounts.weight() == nullptr)
    return r.refuse(
        "which does not define shifts by all bits or more; the amounts must be constants so that they can be checked");
  for (const double amount : numbers(amounts)) {
    if (amount < 0 || amount >= bits)
      return r.refuse("which does not define shifts by all bits or more, and input 1 has an amount outside 0 to " +
                      std::to_string(bits - 1));
  }
  return {};
}

std::string mod_28(Rewrite& r) {
  const bp_dtype_t dtype = r.node.input(0).value.dtype();
  const bool is_real =
      dtype == BP_DTYPE_FLOAT || dtype == BP_DTYPE_DOUBLE || dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
  if (is_real && r.node.number("fmod", 0) == 0)
    return r.refuse("which divides only integers with fmod 0, and here the inputs are floating-point numbers");
  return {};
}

std::string grid_sample_20(Rewrite& r) {
  const std::string mode = r.node.text("mode", "linear");
  if (r.rank(0) != 4) return r.refuse("whose input X has 4 dimensions, not " + std::to_string(r.rank(0)));
  if (mode == "linear") r.node.set("mode", std::string("bilinear"));
  if (mode == "cubic") r.node.set("mode", std::string("bicubic"));
  return {};
}

std::string reshape_14(Rewrite& r) {
  if (r.node.number("allowzero", 0) != 0) {
    const auto shape = r.ints(1);
    if (!shape || std::find(shape->begin(), shape->end(), 0) != shape->end()) {
      return r.refuse("which has no allowzero: the shape must be a constant without 0");
    }
  }
  r.node.erase("allowzero");
  return {};
}

std::string shape_15(Rewrite& r) {
  const int64_t rank = r.rank(0), start = r.node.number("start", 0), end = r.node.number("end", rank);
  if ((start != 0 && start > -rank) || (end < rank)) return r.refuse("which has no attributes start and end");
  r.node.erase("start");
  r.node.erase("end");
  return {};
}

std::string softmax_13(Rewrite& r) {
  // The older form normalizes all dimensions from `axis` on together.
  const Ints extents = r.extents(0);
  const int64_t rank = r.rank(0);
  int64_t axis = r.node.number("axis", -1);
  if (axis < 0) axis += rank;
  if (rank > 0 && !is_all(Ints(extents.begin() + axis + 1, extents.end()), 1))
    return r.refuse("which works on all dimensions from its axis on: those after axis " + std::to_string(axis) +
                    " must have extent 1");
  if (rank == 0) return r.refuse("which does not accept scalars");
  r.node.set("axis", axis);
  return {};
}

std::string per_tensor(Rewrite& r) {
  if (r.rank(1) != 0)
    return r.refuse("which has one scale for the whole tensor, and here the scale has rank " +
                    std::to_string(r.rank(1)));
  r.node.erase("axis");
  return {};
}

// ---- counts of operands --------------------------------------------------------------------------------------------

std::string batch_normalization_15(Rewrite& r) {
  return have_one_type(r, {0, 1, 2}) ? std::string()
                                     : r.refuse("whose scale and bias have the data's type, unlike those of this node");
}

std::string batch_normalization_14(Rewrite& r) {
  if (!have_one_type(r, {0, 3, 4}))
    return r.refuse("whose mean and variance have the data's type, unlike those of this node");
  if (r.node.number("training_mode", 0) != 0) return r.refuse("whose training mode differs: training_mode must be 0");
  r.node.erase("training_mode");
  r.node.outputs.resize(1);
  return {};
}

std::string dropout_10(Rewrite& r) {
  if (r.wants_output(1)) return r.refuse("whose mask has the data's type, and here output 1, the mask, is bool");
  return {};
}

std::string gemm_11(Rewrite& r) {
  if (r.node.input(2)) return {};
  const bp_dtype_t dtype = r.node.inputs[0].value.dtype();
  const Constant& zero =
      r.onnx_model.add_constant(dtype, {1}, std::string(backplane::view::dtype_bits(dtype) / 8, '\0'));
  r.node.inputs.resize(2);
  r.node.inputs.push_back({{}, &zero});
  return {};
}

std::string max_pool_8(Rewrite& r) {
  if (r.wants_output(1)) return r.refuse("which has no output Indices");
  r.node.erase("storage_order");
  return {};
}

// ---- inputs that were attributes -----------------------------------------------------------------------------------

std::string clip_13(Rewrite& r) {
  // If min is greater than max, the newer form returns max, and the older forms do not define the result.
  if (is_greater(r, 1, 2)) r.node.inputs[1] = r.node.inputs[2];
  return {};
}

std::string clip_11(Rewrite& r) {
  const auto least = number(r, 1, -FLT_MAX), most = number(r, 2, FLT_MAX);
  if (!least || !most) {
    const Value bound = r.node.input(!least ? 1 : 2).value;
    return r.refuse(std::string("whose bounds are constants of type FLOAT, and here ") + (!least ? "min" : "max") +
                    (bound.weight() == nullptr ? " is not a constant"
                                               : " is " + std::string(backplane::view::dtype_name(bound.dtype()))));
  }
  r.node.drop_inputs(1);
  r.node.set("min", std::vector<float>{*least});
  r.node.set("max", std::vector<float>{*most});
  for (const char* const name : {"min", "max"}) r.node.find(name)->type = BP_ATTR_FLOAT;
  return {};
}

std::string dropout_12(Rewrite& r) {
  const auto ratio = number(r, 1, 0.5f);
  const Operand training = r.node.input(2);
  if (training.value) {
    const auto mode = backplane::sdk::weight_elements<uint8_t>(training.value, BP_DTYPE_BOOL);
    if (!mode || mode->size() != 1 || mode->front() != 0)
      return r.refuse("which is not for training: training_mode must be a constant false");
  }
  r.node.drop_inputs(1);
  r.node.erase("seed");
  r.node.set("ratio", std::vector<float>{ratio.value_or(0.5f)});  // `ratio` has an effect in training only
  r.node.find("ratio")->type = BP_ATTR_FLOAT;
  return {};
}

std::string pad_19(Rewrite& r) {
  if (r.node.text("mode", "constant") == "wrap") return r.refuse("which has no mode wrap");
  return {};
}

std::string pad_18(Rewrite& r) {
  if (const auto axes = r.ints(3)) {
    const auto pads = r.ints(1);
    if (!pads || pads->size() != 2 * axes->size()) return r.refuse(needs_constant(1));
    const auto rank = static_cast<size_t>(r.rank(0));
    Ints all(2 * rank);
    for (size_t i = 0; i < axes->size(); ++i) {
      const size_t axis = backplane::sdk::axis_of((*axes)[i], rank);
      all[axis] = (*pads)[i];
      all[rank + axis] = (*pads)[axes->size() + i];
    }
    std::string bytes(all.size() * sizeof(int64_t), '\0');
    std::memcpy(bytes.data(), all.data(), bytes.size());
    r.node.inputs[1] = {
        {}, &r.onnx_model.add_constant(BP_DTYPE_INT64, {static_cast<int64_t>(all.size())}, std::move(bytes))};
  } else if (r.node.input(3)) {
    return r.refuse(needs_constant(3));
  }
  r.node.drop_inputs(3);
  return {};
}

std::string pad_11(Rewrite& r) {
  const auto value = number(r, 2, 0);
  if (!value) return r.refuse("whose padding value, input 2 of this node, is a constant of type FLOAT");
  if (!to_attribute(r, 1, "pads")) return r.refuse(needs_constant(1));
  r.node.drop_inputs(1);
  r.node.set("value", std::vector<float>{*value});
  r.node.find("value")->type = BP_ATTR_FLOAT;
  return {};
}

std::string reduce_axes(Rewrite& r) {
  const bool keeps = r.node.number("noop_with_empty_axes", 0) != 0;
  const auto axes = r.ints(1);
  if (r.node.input(1) && !axes) return r.refuse(needs_constant(1));
  const bool none = !axes || axes->empty();
  if (none && keeps) return r.refuse("which has no noop_with_empty_axes: without axes it reduces all dimensions");
  r.node.erase("noop_with_empty_axes");
  r.node.drop_inputs(1);
  if (!none) r.node.set("axes", *axes);
  return {};
}

std::string slice_10(Rewrite& r) {
  const auto steps = r.ints(4);
  if (r.node.input(4) && (!steps || !is_all(*steps, 1)))
    return r.refuse("which has no steps: input 4 must be omitted or a constant 1 for each axis");
  if (!to_attribute(r, 1, "starts")) return r.refuse(needs_constant(1));
  if (!to_attribute(r, 2, "ends")) return r.refuse(needs_constant(2));
  if (!to_attribute(r, 3, "axes")) return r.refuse(needs_constant(3));
  r.node.drop_inputs(1);
  return {};
}

std::string split_18(Rewrite& r) {
  if (!r.node.input(1)) {
    const Ints extents = r.extents(0);
    const size_t axis = backplane::sdk::axis_of(r.node.number("axis", 0), extents.size());
    const auto parts = static_cast<int64_t>(r.node.outputs.size());
    if (parts == 0 || extents[axis] % parts != 0)
      return r.refuse("which, without the sizes as an input, only splits into equal parts");
  }
  r.node.erase("num_outputs");
  return {};
}

std::string split_13(Rewrite& r) {
  if (!to_attribute(r, 1, "split")) return r.refuse(needs_constant(1));
  r.node.drop_inputs(1);
  return {};
}

// For Squeeze and Unsqueeze.
std::string squeeze_13(Rewrite& r) {
  if (!to_attribute(r, 1, "axes")) return r.refuse(needs_constant(1));
  r.node.drop_inputs(1);
  return {};
}

std::string top_k_10(Rewrite& r) {
  const auto k = r.ints(1);
  if (!k || k->size() != 1) return r.refuse(needs_constant(1));
  r.node.drop_inputs(1);
  r.node.set("k", k->front());
  return {};
}

std::string dft_20(Rewrite& r) {
  int64_t axis = -2;
  if (r.node.input(2)) {
    const auto given = r.ints(2);
    if (!given || given->size() != 1) return r.refuse(needs_constant(2));
    axis = given->front();
  }
  r.node.drop_inputs(2);
  r.node.set("axis", axis < 0 ? axis + r.rank(0) : axis);
  return {};
}

// ---- Resize and Upsample -------------------------------------------------------------------------------------------

std::string resize_19(Rewrite& r) {
  if (r.node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric")
    return r.refuse("which has no half_pixel_symmetric");
  return {};
}

std::string resize_18(Rewrite& r) {
  if (r.node.number("antialias", 0) != 0) return r.refuse("which has no antialias");
  if (r.node.find("axes") != nullptr) return r.refuse("which has no attribute axes");
  if (r.node.input(3) && r.node.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    return r.refuse("which has no keep_aspect_ratio_policy");
  r.node.erase("antialias");
  r.node.erase("keep_aspect_ratio_policy");
  return {};
}

// The older form needs an empty tensor in place of each omitted input.
std::string resize_13(Rewrite& r) {
  r.node.inputs.resize(r.node.input(3) ? 4 : 3);
  for (const size_t slot : {size_t{1}, size_t{2}}) {
    if (!r.node.inputs[slot]) r.node.inputs[slot] = {{}, &r.onnx_model.add_constant(BP_DTYPE_FLOAT, {0}, {})};
  }
  return {};
}

std::string resize_11(Rewrite& r) {
  const std::string mode = r.node.text("mode", "nearest");
  const auto scales = r.floats(2);
  if (!scales || scales->empty() || r.node.input(3))
    return r.refuse("which needs constant scales, and here the scales are computed or sizes are given instead");
  if (mode == "cubic") return r.refuse("which has no cubic mode");
  if (r.node.text("coordinate_transformation_mode", "half_pixel") != "asymmetric")
    return r.refuse("which only has asymmetric coordinates, and here coordinate_transformation_mode is another");
  if (mode == "nearest") {
    // The older form does not define how coordinates are rounded. Libraries are assumed to round as the loader does
    // when it upgrades that form.
    const std::string nearest = r.node.text("nearest_mode", "round_prefer_floor");
    const bool grows = std::any_of(scales->begin(), scales->end(), [](float scale) { return scale > 1; });
    const bool shrinks = std::any_of(scales->begin(), scales->end(), [](float scale) { return scale < 1; });
    if (grows && shrinks) return r.refuse("which either enlarges or shrinks, but not both");
    if (nearest != (shrinks ? "ceil" : "floor"))
      return r.refuse("which rounds down where it enlarges, and up where it shrinks, and here nearest_mode is " +
                      nearest);
  }
  if (r.node.number("exclude_outside", 0) != 0) return r.refuse("which has no exclude_outside");
  for (const char* const name :
       {"coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode"})
    r.node.erase(name);
  r.node.inputs = {r.node.inputs[0], r.node.inputs[2]};
  return {};
}

std::string resize_10(Rewrite& r) {
  const auto scales = r.floats(1);
  if (!scales || std::any_of(scales->begin(), scales->end(), [](float scale) { return scale < 1; }))
    return r.refuse("which only enlarges: the scales must be constants of at least 1");
  r.node.op = "Upsample";
  return {};
}

std::string upsample_9(Rewrite& r) {
  const auto scales = r.floats(1);
  if (!scales) return r.refuse(needs_constant(1));
  r.node.drop_inputs(1);
  r.node.set("scales", *scales);
  return {};
}

}  // namespace onnxifi_backend
