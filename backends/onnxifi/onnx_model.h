// SPDX-License-Identifier: Apache-2.0
// An island as an ONNX model: nodes that can be rewritten in older forms, then serialized.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backplane/sdk.hpp"

namespace onnxifi_backend {

using backplane::sdk::Graph;
using backplane::sdk::Node;
using backplane::sdk::Value;

struct Attribute {
  std::string name;
  uint32_t type = 0;  // BP_ATTR_*
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> texts;
  std::vector<uint32_t> tensors;  // tensor attributes, as indices of the graph's weights
};

// A constant that a rewrite adds.
struct Constant {
  std::string name;
  bp_dtype_t dtype = 0;
  std::vector<int64_t> extents;
  std::string bytes;
};

struct Operand {
  Value value;                         // a value of the graph, or empty
  const Constant* constant = nullptr;  // or a constant that a rewrite added
  explicit operator bool() const { return static_cast<bool>(value) || constant != nullptr; }
};

struct OnnxNode {
  std::string op, domain, name;
  uint32_t since = 0;  // since version of the node's current form
  std::vector<Operand> inputs, outputs;
  std::vector<Attribute> attributes;

  Attribute* find(std::string_view attribute);
  void erase(std::string_view attribute);
  void set(std::string_view attribute, int64_t value);
  void set(std::string_view attribute, const std::string& value);
  void set(std::string_view attribute, std::vector<int64_t> values);
  void set(std::string_view attribute, std::vector<float> values);
  int64_t number(std::string_view attribute, int64_t otherwise);
  std::string text(std::string_view attribute, std::string_view otherwise);
  // The operand in an input slot; empty if omitted.
  Operand input(size_t slot) const { return slot < inputs.size() ? inputs[slot] : Operand(); }
  void drop_inputs(size_t from) {
    if (inputs.size() > from) inputs.resize(from);
  }
};

class OnnxModel {
 public:
  // The model of a whole graph, or of one node with its operands. The graph must outlive the OnnxModel.
  explicit OnnxModel(const Graph& graph);
  explicit OnnxModel(const Node& node);
  OnnxModel(const OnnxModel&) = delete;
  OnnxModel& operator=(const OnnxModel&) = delete;

  std::vector<OnnxNode>& nodes() { return nodes_; }
  const Graph& graph() const { return graph_; }
  const std::vector<Value>& inputs() const { return inputs_; }  // without weights
  const std::vector<Value>& outputs() const { return outputs_; }
  // The weights, each once, in the order in which the nodes first read them.
  std::vector<Value> weights() const;
  std::string name(const Value& value) const { return names_.at(value.index()); }
  const std::vector<std::unique_ptr<Constant>>& constants() const { return constants_; }
  const Constant& add_constant(bp_dtype_t dtype, std::vector<int64_t> extents, std::string bytes);

  struct Versions {
    uint32_t ir_version = 3;
    std::map<std::string, uint32_t, std::less<>> opsets;
  };
  // The serialized model. Constant tensors of at most `max_inside` bytes are initializers (kAll: all of them, kNone:
  // none). The others are inputs without data, listed after the graph's inputs. Before IR version 4, initializers are
  // also listed as inputs.
  static constexpr uint64_t kAll = UINT64_MAX - 1, kNone = UINT64_MAX;
  std::string bytes(const Versions& versions, uint64_t max_inside) const;

 private:
  void add(const Node& node);

  const Graph graph_;
  std::vector<OnnxNode> nodes_;
  std::vector<Value> inputs_, outputs_;
  std::map<uint32_t, std::string> names_;  // keyed by value index
  std::set<std::string> taken_;            // the names in a whole graph, and those of constants
  std::vector<std::unique_ptr<Constant>> constants_;
};

}  // namespace onnxifi_backend
