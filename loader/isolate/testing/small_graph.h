// SPDX-License-Identifier: Apache-2.0
// A graph with one node, attributes and a weight, and a function that reads everything in a graph.
#pragma once

#include <cstdint>
#include <cstring>

#include "backplane/graph.h"
#include "base/abi.h"

namespace backplane::isolate::testing {

class SmallGraph {
 public:
  SmallGraph() {
    graph_.size = sizeof graph_;
    graph_.id = 5;
    graph_.name = abi::text("small");
    set(nodes_, graph_.nodes, graph_.node_count, graph_.node_stride);
    set(values_, graph_.values, graph_.value_count, graph_.value_stride);
    set(types_, graph_.types, graph_.type_count, graph_.type_stride);
    set(attributes_, graph_.attributes, graph_.attribute_count, graph_.attribute_stride);
    set(weights_, graph_.weights, graph_.weight_count, graph_.weight_stride);
    set(symbols_, graph_.symbols, graph_.symbol_count, graph_.symbol_stride);
    set(opsets_, graph_.opsets, graph_.opset_count, graph_.opset_stride);
    graph_.uses = uses_;
    graph_.use_count = 2;
    graph_.dims = dims_;
    graph_.dim_count = 2;
    graph_.operands = operands_;
    graph_.operand_count = 4;
    graph_.inputs = inputs_;
    graph_.outputs = outputs_;
    graph_.input_count = graph_.output_count = 1;
  }
  SmallGraph(const SmallGraph&) = delete;
  const bp_graph_t& graph() const { return graph_; }

 private:
  template <class T, size_t kCount>
  static void set(const T (&array)[kCount], const T*& pointer, uint32_t& count, uint32_t& stride) {
    pointer = array;
    count = kCount;
    stride = sizeof(T);
  }

  const float alpha_ = 0.5f;
  const bp_text_t words_[1] = {abi::text("none")};
  const float data_[3] = {1, 2, 3};
  const bp_node_t nodes_[1] = {{abi::text("Gemm"), {}, {}, abi::text("n"), 9, 13, 0, 3, 3, 1, 0, 2, 0}};
  const bp_value_t values_[3] = {
      {abi::text("x"), 0, BP_NONE, 0, BP_NONE, BP_NONE, 0, 1, BP_VALUE_INPUT},
      {abi::text("w"), 1, BP_NONE, BP_NONE, 0, BP_NONE, 1, 1, 0},
      {abi::text("y"), 0, 0, 0, BP_NONE, BP_NONE, 0, 0, BP_VALUE_OUTPUT},
  };
  const bp_type_t types_[2] = {{BP_KIND_TENSOR, BP_DTYPE_FLOAT, 2, 0, BP_NONE, 0},
                               {BP_KIND_TENSOR, BP_DTYPE_FLOAT, 1, 1, BP_NONE, 0}};
  const bp_attribute_t attributes_[2] = {{abi::text("alpha"), BP_ATTR_FLOAT, 1, &alpha_},
                                         {abi::text("word"), BP_ATTR_STRING, 1, words_}};
  const bp_weight_t weights_[1] = {{BP_DTYPE_FLOAT, 1, 1, 0, sizeof data_, data_, {}, 0, 77}};
  const bp_symbol_t symbols_[1] = {{abi::text("rows"), 1, 100}};
  const bp_opset_t opsets_[1] = {{abi::text(""), 27, 0}};
  const bp_use_t uses_[2] = {{0, 0}, {0, 1}};
  const bp_dim_t dims_[2] = {{-1, 0, 0}, {3, BP_NONE, 0}};
  const uint32_t operands_[4] = {0, 1, BP_NONE, 2};
  const uint32_t inputs_[1] = {0}, outputs_[1] = {2};
  bp_graph_t graph_{};
};

// Reads everything to which the graph refers. Returns a sum, so that the compiler does not remove the reads.
inline uint64_t walk(const bp_graph_t& graph) {
  uint64_t sum = graph.id;
  const auto text = [&](bp_text_t of) {
    for (uint64_t i = 0; i < of.size; ++i) sum += static_cast<unsigned char>(of.data[i]);
  };
  const auto dims = [&](uint32_t first, uint64_t rank) {
    for (uint64_t i = 0; i < rank; ++i) {
      const bp_dim_t& dim = graph.dims[first + i];
      sum += static_cast<uint64_t>(dim.extent);
      if (dim.symbol != BP_NONE) text(bp_graph_symbol(&graph, dim.symbol)->name);
    }
  };
  const auto type = [&](uint32_t index) {
    const bp_type_t& of = *bp_graph_type(&graph, index);
    if (of.rank > 0) dims(of.first_dim, static_cast<uint64_t>(of.rank));
  };
  text(graph.name);
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    const bp_node_t& node = *bp_graph_node(&graph, n);
    for (const bp_text_t& name : {node.op_type, node.domain, node.overload, node.name}) text(name);
    for (uint32_t i = 0; i < node.input_count; ++i)
      if (const uint32_t value = bp_node_input(&graph, &node, i); value != BP_NONE)
        text(bp_graph_value(&graph, value)->name);
    for (uint32_t i = 0; i < node.output_count; ++i)
      if (const uint32_t value = bp_node_output(&graph, &node, i); value != BP_NONE)
        text(bp_graph_value(&graph, value)->name);
    for (uint32_t i = 0; i < node.attribute_count; ++i)
      text(bp_graph_attribute(&graph, node.first_attribute + i)->name);
  }
  for (uint32_t v = 0; v < graph.value_count; ++v) {
    const bp_value_t& value = *bp_graph_value(&graph, v);
    type(value.type);
    if (value.producer != BP_NONE) sum += bp_graph_node(&graph, value.producer)->id;
    if (value.weight != BP_NONE) sum += bp_graph_weight(&graph, value.weight)->id;
    for (uint32_t i = 0; i < value.use_count; ++i)
      sum += bp_graph_node(&graph, graph.uses[value.first_use + i].node)->id;
  }
  for (uint32_t w = 0; w < graph.weight_count; ++w) {
    const bp_weight_t& weight = *bp_graph_weight(&graph, w);
    dims(weight.first_dim, weight.rank);
    if (weight.data) text({static_cast<const char*>(weight.data), weight.bytes});
  }
  for (uint32_t i = 0; i < graph.input_count; ++i) text(bp_graph_value(&graph, graph.inputs[i])->name);
  for (uint32_t i = 0; i < graph.output_count; ++i) text(bp_graph_value(&graph, graph.outputs[i])->name);
  for (uint32_t i = 0; i < graph.subgraph_count; ++i) sum += walk(*graph.subgraphs[i]);
  return sum;
}

}  // namespace backplane::isolate::testing
