// SPDX-License-Identifier: Apache-2.0
#include "ops/table.h"

#include <charconv>
#include <climits>
#include <cmath>

#include "engine/weight.h"
#include "ops/cost.h"

namespace backplane::opencl {
namespace {

// The order in which a reader wants to see them.
constexpr std::span<const Row> (*kFamilies[])() = {
    elementwise_rows, movement_rows,  generate_rows,    gather_rows,   reduce_rows,         normalization_rows,
    gemm_rows,        attention_rows, rotary_rows,      conv_rows,     conv_transpose_rows, pool_rows,
    pad_rows,         resize_rows,    grid_sample_rows, quantize_rows, loss_rows,
};

// Kernels number a tensor's dimensions in at most this many.
constexpr int32_t kMaxRank = 16;

const Row* find_row(const Node& node, bool& out_known) {
  const Row* best = nullptr;
  out_known = false;
  for (const auto family : kFamilies) {
    for (const Row& row : family()) {
      if (row.op_type != node.op_type() || row.domain != node.domain()) continue;
      out_known = true;
      if (row.since_version <= node.since_version() && (best == nullptr || best->since_version < row.since_version))
        best = &row;
    }
  }
  return best;
}

Verdict check_operand(const Facts& facts, const Value& value, const std::string& place) {
  if (!value.is_tensor()) return sdk::no(BP_REASON_DTYPE, place + " is not a tensor");
  if ((facts.dtypes() >> value.dtype() & 1) == 0) {
    return sdk::no(BP_REASON_DTYPE, place + " is " + std::string(view::dtype_name(value.dtype())) +
                                        ", which this device does not compute with");
  }
  if (value.rank() < 0) return sdk::no(BP_REASON_SHAPE, place + " has no known rank");
  if (value.rank() > kMaxRank) {
    return sdk::no(BP_REASON_SHAPE, place + " has rank " + std::to_string(value.rank()) + "; at most " +
                                        std::to_string(kMaxRank) + " is supported");
  }
  const auto bytes = view::dense_bytes(BP_DTYPE_UINT8, value.extents().data(), static_cast<uint32_t>(value.rank()));
  if (value.has_static_shape() && (!bytes || *bytes > INT_MAX))
    return sdk::no(BP_REASON_SHAPE, place + " has more elements than the kernels' 32 bits count");
  return accept();
}

Verdict check_operands(const Facts& facts, const Node& node) {
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (!node.input(i)) continue;
    if (Verdict v = check_operand(facts, node.input(i), "input " + std::to_string(i)); !accepted(v)) return v;
  }
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (!node.output(i)) continue;
    if (Verdict v = check_operand(facts, node.output(i), "output " + std::to_string(i)); !accepted(v)) return v;
  }
  return accept();
}

Verdict check_form(const Row& row, const Node& node) {
  const auto plural = [](uint32_t n, const char* what) { return std::to_string(n) + " " + what; };
  uint32_t inputs = node.input_count(), outputs = node.output_count();
  while (inputs > 0 && !node.input(inputs - 1)) --inputs;
  while (outputs > 0 && !node.output(outputs - 1)) --outputs;
  if (inputs < row.form.least || inputs > row.form.most)
    return sdk::no(BP_REASON_OTHER, "it has " + plural(inputs, "inputs"));
  for (uint32_t i = 0; i < row.form.least; ++i) {
    if (!node.input(i)) return sdk::no(BP_REASON_OTHER, "input " + std::to_string(i) + " is omitted");
  }
  if (outputs == 0 || outputs > row.form.outputs) {
    return sdk::no(BP_REASON_OTHER,
                   plural(outputs, "outputs") + " are wanted and " + std::to_string(row.form.outputs) + " offered");
  }
  const bp_dtype_t wanted = row.form.result == Form::kBool ? BP_DTYPE_BOOL : node.input(0) ? node.input(0).dtype() : 0;
  if (row.form.result != Form::kOpen && node.output(0) && node.output(0).dtype() != wanted) {
    return sdk::no(BP_REASON_DTYPE, "its output is " + std::string(view::dtype_name(node.output(0).dtype())) +
                                        " and would be " + std::string(view::dtype_name(wanted)));
  }
  return accept();
}

// Names mean the same in every operator here. One of another type would be read as if it were absent.
constexpr std::string_view kFloatAttributes[] = {
    "alpha", "beta", "bias", "cubic_coeff_a", "epsilon", "extrapolation_value", "gamma", "lambd", "scale", "softcap"};
constexpr std::string_view kIntAttributes[] = {"align_corners",
                                               "allowzero",
                                               "antialias",
                                               "axis",
                                               "batch_dims",
                                               "block_size",
                                               "blocksize",
                                               "ceil_mode",
                                               "count_include_pad",
                                               "detect_negative",
                                               "detect_positive",
                                               "end",
                                               "exclude_outside",
                                               "exclusive",
                                               "fmod",
                                               "group",
                                               "ignore_index",
                                               "interleaved",
                                               "is_causal",
                                               "k",
                                               "keepdims",
                                               "kv_num_heads",
                                               "largest",
                                               "noop_with_empty_axes",
                                               "num_groups",
                                               "num_heads",
                                               "num_outputs",
                                               "p",
                                               "precision",
                                               "q_num_heads",
                                               "qk_matmul_output_mode",
                                               "reverse",
                                               "rotary_embedding_dim",
                                               "select_last_index",
                                               "size",
                                               "start",
                                               "storage_order",
                                               "to",
                                               "training_mode",
                                               "transA",
                                               "transB",
                                               "upper"};
constexpr std::string_view kStringAttributes[] = {"approximate",
                                                  "auto_pad",
                                                  "coordinate_transformation_mode",
                                                  "direction",
                                                  "keep_aspect_ratio_policy",
                                                  "mode",
                                                  "nearest_mode",
                                                  "padding_mode",
                                                  "reduction"};
constexpr std::string_view kIntsAttributes[] = {"axes",         "dilations", "kernel_shape", "output_padding",
                                                "output_shape", "pads",      "perm",         "strides"};
constexpr std::string_view kTensorAttributes[] = {"value"};
constexpr struct {
  uint32_t type;
  std::span<const std::string_view> names;
} kAttributeTypes[] = {
    {BP_ATTR_FLOAT, kFloatAttributes}, {BP_ATTR_INT, kIntAttributes},       {BP_ATTR_STRING, kStringAttributes},
    {BP_ATTR_INTS, kIntsAttributes},   {BP_ATTR_TENSOR, kTensorAttributes},
};

Verdict check_attributes(const Node& node) {
  for (const auto& [type, names] : kAttributeTypes) {
    for (const std::string_view name : names) {
      const bp_attribute_t* attribute = node.attribute(name);
      if (attribute != nullptr && attribute->type != type)
        return sdk::no(BP_REASON_ATTRIBUTE, "attribute " + std::string(name) + " has the wrong type");
    }
  }
  return accept();
}

Verdict judge(const Facts& facts, const Node& node, const Row** out_row) {
  bool known = false;
  const Row* row = find_row(node, known);
  const std::string op(node.op_type());
  if (!known) return sdk::no(BP_REASON_OPERATOR, "operator " + op + " has no kernel for OpenCL");
  for (const bp_opset_t& opset : kNewestOpsets) {
    if (node.domain() != view::text(opset.domain) || node.since_version() <= opset.version) continue;
    return sdk::no(BP_REASON_OPSET, op + " in its form of version " + std::to_string(node.since_version()) +
                                        " is newer than version " + std::to_string(opset.version) +
                                        ", the newest known");
  }
  if (row == nullptr)
    return sdk::no(BP_REASON_OPSET, op + " in its form of version " + std::to_string(node.since_version()) +
                                        " is older than the kernels");
  if (Verdict v = check_operands(facts, node); !accepted(v)) return v;
  if (Verdict v = check_form(*row, node); !accepted(v)) return v;
  if (Verdict v = check_attributes(node); !accepted(v)) return v;
  if (node.input_count() > 0 && node.input(0) && (row->types >> node.input(0).dtype() & 1) == 0) {
    return sdk::no(BP_REASON_DTYPE, op + " has no kernel for " + std::string(view::dtype_name(node.input(0).dtype())));
  }
  if (row->supports != nullptr) {
    if (Verdict v = row->supports(node); !accepted(v)) return v;
  }
  *out_row = row;
  return accept();
}

}  // namespace

Verdict verdict(const Facts& facts, const Node& node) {
  const Row* row = nullptr;
  Verdict answer = judge(facts, node, &row);
  if (accepted(answer)) {
    answer.seconds = expected_seconds(facts, node);
    answer.confidence = facts.measured ? 0.5f : 0.3f;
  }
  return answer;
}

const Row& supported_row(const Facts& facts, const Node& node) {
  const Row* row = nullptr;
  if (const Verdict v = judge(facts, node, &row); !accepted(v))
    throw sdk::Error(BP_UNSUPPORTED, std::string(node.op_type()) + " '" + std::string(node.name()) + "': " + v.detail,
                     node.id());
  return *row;
}

std::string literal(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  // In hexadecimal, so that every bit arrives; printf would write the decimal point of the host's locale.
  char digits[40];
  char* const end = std::to_chars(digits, digits + sizeof digits, std::abs(value), std::chars_format::hex).ptr;
  const std::string number = "0x" + std::string(digits, end) + "f";
  return std::signbit(value) ? "(-" + number + ")" : number;
}

// ---- shared conditions ---------------------------------------------------------------------------------------------

Verdict same_types(const Node& node) {
  for (uint32_t i = 1; i < node.input_count(); ++i) {
    if (node.input(i) && node.input(i).dtype() != node.input(0).dtype())
      return sdk::no(BP_REASON_DTYPE, "input " + std::to_string(i) + " has another type than input 0");
  }
  return accept();
}

Verdict known_on_host(const Node& node, uint32_t slot) {
  const Value value = node.input(slot);
  if (!value || value.weight() != nullptr) return accept();
  const std::string place = "input " + std::to_string(slot);
  if (value.raw().producer != BP_NONE) return sdk::no(BP_REASON_CONSTANT, place + " is not a constant");
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (node.output(i) && !node.output(i).has_static_shape())
      return sdk::no(BP_REASON_CONSTANT, "the extents of output " + std::to_string(i) + " follow from " + place +
                                             ", which is not a constant");
  }
  return accept();
}

}  // namespace backplane::opencl
