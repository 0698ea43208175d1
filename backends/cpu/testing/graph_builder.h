// SPDX-License-Identifier: Apache-2.0
// Builds graphs of the ABI for tests. Values have names; nodes are added in topological order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backplane/graph.h"

namespace backplane::cpu::testing {

class GraphBuilder;
// Values of attributes: a GraphBuilder stands for a subgraph, such as a loop's body, and must outlive all uses of the
// outer graph. TensorOf is the tensor of a weight that was declared before.
struct TensorOf {
  std::string weight;
};
using AttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, GraphBuilder*, TensorOf>;
using Attributes = std::map<std::string, AttributeValue>;

class GraphBuilder {
 public:
  // A negative extent is unknown: -1 has no name; -2 and below are symbols, where equal numbers mean equal extents.
  GraphBuilder& input(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents);
  GraphBuilder& input(const std::string& name, bp_dtype_t dtype);  // unknown rank
  GraphBuilder& output(const std::string& name);
  // For the builder of a subgraph: captures a value that the outer graph has already declared.
  GraphBuilder& capture(const std::string& name, GraphBuilder& outer);
  // Declares a value as a sequence of tensors.
  GraphBuilder& sequence(const std::string& name, bp_dtype_t dtype);
  template <class T>
  GraphBuilder& weight(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents,
                       const std::vector<T>& data) {
    const auto* bytes = reinterpret_cast<const char*>(data.data());
    return weight_bytes(name, dtype, extents, std::string(bytes, data.size() * sizeof(T)));
  }
  GraphBuilder& weight_bytes(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents,
                             const std::string& bytes);
  // `op_type` may start with a domain: "com.microsoft::Gelu". An empty name omits an operand. Outputs whose type was
  // not declared before have type `dtype` and unknown rank.
  GraphBuilder& node(const std::string& op_type, uint32_t since_version, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, bp_dtype_t dtype = BP_DTYPE_FLOAT,
                     const Attributes& attributes = {});
  // Declares the type of a value that a node computes.
  GraphBuilder& type(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents);
  GraphBuilder& type_of_unknown_rank(const std::string& name, bp_dtype_t dtype);

  // The graph stays valid until the builder is changed or destroyed.
  const bp_graph_t* graph();

 private:
  uint32_t value(const std::string& name);
  void set_type(uint32_t value, bp_dtype_t dtype, const std::vector<int64_t>* extents);
  bp_text_t text(const std::string& view);
  static bp_status_t weight_map(const bp_graph_t* graph, uint32_t weight, const void** out_data, bp_error_t* error);

  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<float>> floats_;
  std::map<std::string, uint32_t> names_;
  std::vector<bp_node_t> nodes_;
  std::vector<bp_value_t> values_;
  std::vector<bp_type_t> types_;
  std::vector<bp_attribute_t> attributes_;
  std::vector<bp_weight_t> weights_;
  std::vector<bp_symbol_t> symbols_;
  std::vector<bp_use_t> uses_;
  std::vector<bp_dim_t> dims_;
  std::vector<uint32_t> operands_, inputs_, outputs_;
  std::vector<GraphBuilder*> bodies_;
  std::vector<const bp_graph_t*> body_graphs_;
  std::deque<uint32_t> indices_;
  bp_graph_t graph_{};
};

}  // namespace backplane::cpu::testing
