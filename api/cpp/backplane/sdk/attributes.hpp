// SPDX-License-Identifier: Apache-2.0
// The types of ONNX's attributes, by name. Lists only names that have the same type in the newest form of every
// operator.
#pragma once

#include <iterator>
#include <string_view>

#include "backplane/graph.hpp"

namespace backplane::sdk {

// The name of an attribute type (BP_ATTR_*), spelled as in ONNX's AttributeProto.AttributeType.
constexpr std::string_view attribute_type_name(uint32_t type) {
  constexpr std::string_view kNames[] = {
      "UNDEFINED", "FLOAT",   "INT",    "STRING",        "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
      "STRINGS",   "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

// Returns the type (BP_ATTR_*) of attributes with this name, or 0 if the name is not listed.
inline uint32_t attribute_type(std::string_view name) {
  using Names = const std::string_view[];
  static constexpr Names kFloats = {"alpha", "beta",  "bias",   "cubic_coeff_a", "epsilon", "extrapolation_value",
                                    "gamma", "lambd", "softcap"};
  static constexpr Names kInts = {"align_corners",
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
  static constexpr Names kStrings = {"approximate",
                                     "auto_pad",
                                     "coordinate_transformation_mode",
                                     "direction",
                                     "keep_aspect_ratio_policy",
                                     "mode",
                                     "nearest_mode",
                                     "padding_mode",
                                     "reduction"};
  static constexpr Names kIntLists = {"axes",         "dilations", "kernel_shape", "output_padding",
                                      "output_shape", "pads",      "perm",         "strides"};
  static constexpr Names kTensors = {"value"};
  const auto among = [name](const auto& names) {
    for (const std::string_view each : names) {
      if (each == name) return true;
    }
    return false;
  };
  if (among(kFloats)) return BP_ATTR_FLOAT;
  if (among(kInts)) return BP_ATTR_INT;
  if (among(kStrings)) return BP_ATTR_STRING;
  if (among(kIntLists)) return BP_ATTR_INTS;
  if (among(kTensors)) return BP_ATTR_TENSOR;
  return 0;
}

}  // namespace backplane::sdk
