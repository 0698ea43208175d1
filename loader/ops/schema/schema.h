// SPDX-License-Identifier: Apache-2.0
// ONNX's operator schemas, in a table read from schemas.txt. scripts/make_schemas.py generates that file from the onnx
// package.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/types.h"
#include "ir/graph.h"

namespace backplane::ops {

struct Formal {
  enum Option : uint8_t { kRequired, kOptional, kVariadic };
  std::string_view name;
  std::string_view type;      // the name of a type parameter ("T"), or a type
  bp_dtype_set_t dtypes = 0;  // allowed tensor element types; 0: containers only
  uint32_t kinds = 0;         // bits (1 << BP_KIND_*)
  Option option = kRequired;
  bool homogeneous = true;  // for kVariadic: all values have the same type
};

struct AttributeRule {
  std::string_view name;
  uint32_t type = 0;  // BP_ATTR_*
  bool required = false;
  bool has_default = false;
  model::Attribute fallback;  // the default, if has_default is set
};

// One form of an operator, valid from version `since_version` of its domain until the next form.
struct Schema {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  uint32_t since_version = 0;
  bool deprecated = false;
  bool function = false;  // ONNX defines it by a body of other operators
  bool deterministic = true;
  uint32_t min_inputs = 0, max_inputs = 0;  // UINT32_MAX: any number
  uint32_t min_outputs = 0, max_outputs = 0;
  std::vector<Formal> inputs, outputs;
  std::vector<AttributeRule> attributes;  // sorted by name
  const Schema* newer = nullptr;          // the next form; null for the newest
  const Schema* older = nullptr;

  const AttributeRule* attribute(std::string_view name) const;
};

// "floats" for BP_ATTR_FLOATS, as ONNX names the types.
std::string_view attribute_type_name(uint32_t type);
// The form of an operator that is valid in version `opset` of its domain; null if the operator does not exist in it.
const Schema* find_schema(std::string_view domain, std::string_view name, uint32_t opset);
// The newest form of an operator; null if the operator is unknown.
const Schema* newest_schema(std::string_view domain, std::string_view name);
// The newest IR version (version of ONNX's file format) that the loader reads. Of the types that this version added,
// FLOAT6E2M3 and FLOAT6E3M2 are refused.
inline constexpr uint32_t kNewestIrVersion = 14;
// The newest version of a domain that the table covers; 0 for foreign domains.
uint32_t newest_opset(std::string_view domain);
// Every form of every operator, sorted by domain, name and version.
std::span<const Schema> all_schemas();

}  // namespace backplane::ops
