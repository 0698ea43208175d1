// SPDX-License-Identifier: Apache-2.0
// A read-only view of a node of the ABI's graph.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backplane/graph.h"
#include "backplane/plugin.h"

namespace backplane::cpu {

class Body;
class Operators;
class Program;

// Cheap to create. Borrows the graph.
class Node {
 public:
  // `operators`: the table, for the verdict on a node (coverage.h) and for rows that look up other rows. `program`: the
  // program that is being compiled, for `body`. Each may be null where it is not used.
  Node(const bp_graph_t& graph, uint32_t index, const Operators* operators = nullptr, Program* program = nullptr)
      : graph_(&graph), index_(index), node_(bp_graph_node(&graph, index)), operators_(operators), program_(program) {}

  const bp_graph_t& graph() const { return *graph_; }
  uint32_t index() const { return index_; }
  const Operators* operators() const { return operators_; }
  uint64_t id() const { return node_->id; }
  std::string_view op_type() const { return {node_->op_type.data, node_->op_type.size}; }
  std::string_view domain() const { return {node_->domain.data, node_->domain.size}; }
  std::string_view name() const { return {node_->name.data, node_->name.size}; }
  uint32_t since_version() const { return node_->since_version; }

  uint32_t input_count() const { return node_->input_count; }
  uint32_t output_count() const { return node_->output_count; }
  bool has_input(uint32_t slot) const { return bp_node_input(graph_, node_, slot) != BP_NONE; }
  bool has_output(uint32_t slot) const { return bp_node_output(graph_, node_, slot) != BP_NONE; }
  // Returns the type of an input or output. If it is omitted or its type is unknown: kind 0, dtype 0 and rank -1.
  bp_type_t input_type(uint32_t slot) const;
  bp_type_t output_type(uint32_t slot) const;
  // Returns the number of elements of an input or output, or -1 if its rank or an extent is unknown.
  double input_elements(uint32_t slot) const { return elements(input_type(slot)); }
  double output_elements(uint32_t slot) const { return elements(output_type(slot)); }
  // Returns an extent of an input, or -1 if it is unknown or the input has no dimension `dim`.
  int64_t input_extent(uint32_t slot, int dim) const;

  // Returns the value of an attribute, or `fallback` if the node has no attribute with this name and type.
  int64_t attr(std::string_view name, int64_t fallback) const;
  float attr(std::string_view name, float fallback) const;
  std::string attr(std::string_view name, const char* fallback) const;
  std::vector<int64_t> ints(std::string_view name) const;       // empty when absent
  std::vector<float> floats(std::string_view name) const;       // empty when absent
  std::vector<std::string> texts(std::string_view name) const;  // empty when absent
  const bp_attribute_t* find(std::string_view name) const;      // null when absent
  // `graph_in` returns the subgraph in an attribute, null when absent. `body` compiles it and may be called only while
  // the node's own program is being compiled.
  const bp_graph_t* graph_in(std::string_view name) const;
  const Body& body(std::string_view name) const;

  // Returns a copy of this node that reports its string tensors as INT64.
  Node with_texts_as_numbers() const;

 private:
  const bp_graph_t* graph_;
  bp_type_t type_of(uint32_t value) const;
  double elements(const bp_type_t& type) const;

  uint32_t index_;
  const bp_node_t* node_;
  const Operators* operators_;
  Program* program_;
  bool texts_are_numbers_ = false;
};

}  // namespace backplane::cpu
