// SPDX-License-Identifier: Apache-2.0
// Graphs as a plugin sees them: ABI tables built from a description.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "backplane/graph.h"
#include "host/end_of_page.h"
#include "onnx/graph.h"

namespace backplane::conform {

using onnx::Attribute;
using onnx::Attributes;
using onnx::GraphSpec;
using onnx::NodeSpec;
using onnx::ValueSpec;

// The ABI's tables for a graph description. Weights have odd addresses, which the ABI permits. Reads just beyond the
// table or one of its arrays crash. Immutable once a plugin has seen it.
class Graph {
 public:
  explicit Graph(GraphSpec spec) : Graph(std::move(spec), nullptr, "") {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const bp_graph_t* table() const { return &table_; }
  // Marks every weight as replaceable. Must be called before a plugin sees the graph.
  void allow_refit();
  // Hides the bytes of weights, so that a plugin must call `weight_map`. Must be called before a plugin sees the graph.
  void hide_weights();
  // Turns a value into a container whose elements have the value's former type. `kind` is BP_KIND_*, and maps have keys
  // of type `key`. Must be called before a plugin sees the graph. The graph cannot be serialized afterwards.
  void contain(uint32_t value, uint32_t kind, bp_dtype_t key);
  const void* weight(uint32_t index) const { return bytes_[index].data() + 1; }
  const GraphSpec& spec() const { return spec_; }

 private:
  // All names begin with `prefix`, so that they differ from the names in enclosing graphs.
  Graph(GraphSpec spec, const Graph* parent, std::string prefix);
  void add_value(uint32_t index);
  void add_node(uint32_t index);
  void add_uses();
  uint32_t symbol(const std::string& name);
  void publish();  // copies the vectors below into arrays_ and points table_ to them

  GraphSpec spec_;
  const Graph* const parent_;
  const std::string prefix_;
  EndOfPage table_memory_, arrays_;
  bp_graph_t& table_;
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
  std::deque<std::vector<std::byte>> bytes_;  // bytes of each weight, after one unused byte
  std::vector<bp_symbol_t> symbols_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  std::vector<const bp_graph_t*> body_tables_;
  std::deque<uint32_t> body_indices_;
};

}  // namespace backplane::conform
