// SPDX-License-Identifier: Apache-2.0
// Small graphs as a plugin sees them, built from a description that may also be wrong on purpose.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backplane/graph.h"
#include "schema/value.h"

namespace backplane::conform {

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

// The tables of a description. Weights lie at odd addresses, as the ABI permits. Immutable.
class Graph {
 public:
  explicit Graph(GraphSpec spec) : Graph(std::move(spec), nullptr, "") {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const bp_graph_t* table() const { return &table_; }
  // Says that every weight may be replaced later. Before a plugin sees the graph.
  void allow_refit();
  // Takes the weights' bytes away: a plugin must ask `weight_map` for them. Before a plugin sees the graph.
  void hide_weights();
  const void* weight(uint32_t index) const { return bytes_[index].data() + 1; }
  const GraphSpec& spec() const { return spec_; }

 private:
  // `prefix`: of the names, which differ from those of the graphs around.
  Graph(GraphSpec spec, const Graph* parent, std::string prefix);
  void add_value(uint32_t index);
  void add_node(uint32_t index);
  void add_uses();
  uint32_t symbol(const std::string& name);

  GraphSpec spec_;
  const Graph* const parent_;
  const std::string prefix_;
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
  std::deque<std::vector<std::byte>> bytes_;  // by weight, from the second byte on
  std::vector<bp_symbol_t> symbols_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  std::vector<const bp_graph_t*> body_tables_;
  std::deque<uint32_t> body_indices_;
};

// The same as a serialised ModelProto, weights inside.
std::string serialize(const GraphSpec& spec);

}  // namespace backplane::conform
