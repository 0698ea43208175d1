// SPDX-License-Identifier: Apache-2.0
// A description of a graph, which may be invalid on purpose.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "onnx/value.h"

namespace backplane::onnx {

struct GraphSpec;
struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::shared_ptr<const GraphSpec>>
      value;
};
using Attributes = std::vector<Attribute>;

struct NodeSpec {
  std::string op_type;
  std::string domain;
  uint32_t since_version = 1;
  std::vector<uint32_t> inputs;  // values; BP_NONE: omitted
  std::vector<uint32_t> outputs;
  Attributes attributes;
};

struct ValueSpec {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  std::vector<int64_t> extents;        // -1: unknown
  std::optional<onnx::Tensor> weight;  // the constant's elements, if the value is constant
  uint32_t outer = BP_NONE;            // in the body of a node: the outer graph's value that this value refers to
  std::vector<std::string> symbols;    // names of unknown extents; an empty or missing name means unnamed
};

// Nodes must be in topological order. Nothing is checked.
struct GraphSpec {
  std::vector<ValueSpec> values;
  std::vector<NodeSpec> nodes;
  std::vector<uint32_t> inputs, outputs;  // values
  uint32_t opset = 1;
};

// Returns a serialized ModelProto, including the weights.
std::string serialize(const GraphSpec& spec);

}  // namespace backplane::onnx
