// SPDX-License-Identifier: Apache-2.0
// Small graphs as a plugin sees them, built from a description that may also be wrong on purpose.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backplane/graph.h"
#include "schema/value.h"

namespace backplane::conform {

struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>> value;
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
  std::vector<int64_t> extents;
  std::optional<onnx::Tensor> weight;  // its bytes, where the value is constant
};

// Nodes stand in topological order. Nothing here is checked.
struct GraphSpec {
  std::vector<ValueSpec> values;
  std::vector<NodeSpec> nodes;
  std::vector<uint32_t> inputs, outputs;  // values
  uint32_t opset = 1;
};

// The tables of a description. Weights lie at odd addresses, as the ABI permits. Immutable.
class Graph {
 public:
  explicit Graph(GraphSpec spec);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const bp_graph_t* table() const { return &table_; }
  const GraphSpec& spec() const { return spec_; }

 private:
  void add_value(uint32_t index);
  void add_node(uint32_t index);
  void add_uses();

  GraphSpec spec_;
  bp_graph_t table_ = {};
  bp_opset_t opset_ = {};
  std::vector<bp_node_t> nodes_;
  std::vector<bp_value_t> values_;
  std::vector<bp_type_t> types_;
  std::vector<bp_attribute_t> attributes_;
  std::vector<bp_weight_t> weights_;
  std::vector<bp_use_t> uses_;
  std::vector<bp_dim_t> dims_;
  std::vector<uint32_t> operands_;
  std::deque<std::string> names_;
  std::deque<bp_text_t> texts_;
  std::deque<std::vector<std::byte>> bytes_;
};

// The same as a serialised ModelProto, weights inside.
std::string serialize(const GraphSpec& spec);

}  // namespace backplane::conform
