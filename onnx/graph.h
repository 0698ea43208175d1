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
  std::vector<uint32_t> inputs;  // values; BP_NONE is an omitted one
  std::vector<uint32_t> outputs;
  Attributes attributes;
};

struct ValueSpec {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  std::vector<int64_t> extents;        // -1: not known
  std::optional<onnx::Tensor> weight;  // its bytes, where the value is constant
  uint32_t outer = BP_NONE;            // in the body of a node: the value around it that this one is
  std::vector<std::string> symbols;    // of extents that are not known: a name, or empty; fewer are empty ones
};

// Nodes stand in topological order. Nothing here is checked.
struct GraphSpec {
  std::vector<ValueSpec> values;
  std::vector<NodeSpec> nodes;
  std::vector<uint32_t> inputs, outputs;  // values
  uint32_t opset = 1;
};

// A serialized ModelProto with the weights inside.
std::string serialize(const GraphSpec& spec);

}  // namespace backplane::onnx
