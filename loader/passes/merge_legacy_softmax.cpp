// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and Hardmax of opset 11 and older flatten their input. If the rank was unknown during the
// upgrade, the upgrade wrote Flatten → Softmax → Reshape. Now that shapes are inferred, this pass merges the three
// nodes into one if only the last dimension was meant.
#include <algorithm>

#include "ir/subgraphs.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

bool same_shape(const Type& a, const Type& b) {
  return a.rank >= 0 && a.rank == b.rank &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), [](const bp_dim_t& x, const bp_dim_t& y) {
           return x.extent == y.extent && (x.extent >= 0 || (x.symbol == y.symbol && x.symbol != BP_NONE));
         });
}

// A quick test: the pattern always contains a Flatten.
bool may_merge(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op_type == "Flatten"; });
}

void merge_nodes(Graph& graph) {
  std::vector<uint32_t> made_by(graph.values.size(), BP_NONE), reads(graph.values.size());
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const ValueId output : node.outputs) {
      if (output != BP_NONE) made_by[output] = n;
    }
    for (const ValueId input : node.inputs) {
      if (input != BP_NONE) ++reads[input];
    }
    for (const ValueId captured : captures(graph, node)) ++reads[captured];
  }
  for (const ValueId output : graph.outputs) ++reads[output];

  // Returns the node that writes the first input of `node`. Returns null if another node also reads that input, or if
  // the operator is unwanted.
  const auto before = [&](const Node& node, auto is_wanted) -> Node* {
    const ValueId value = node.input(0);
    if (value == BP_NONE || reads[value] != 1 || made_by[value] == BP_NONE) return nullptr;
    Node& maker = graph.nodes[made_by[value]];
    return maker.domain.empty() && is_wanted(maker.op_type) ? &maker : nullptr;
  };
  for (Node& reshape : graph.nodes) {
    if (reshape.op_type != "Reshape" || !reshape.domain.empty()) continue;
    Node* softmax =
        before(reshape, [](std::string_view op) { return op == "Softmax" || op == "LogSoftmax" || op == "Hardmax"; });
    Node* flatten = softmax ? before(*softmax, [](std::string_view op) { return op == "Flatten"; }) : nullptr;
    if (!flatten || softmax->attr("axis", int64_t{0}) != -1) continue;
    const Type& type = graph.values[flatten->inputs[0]].type;
    if (flatten->attr("axis", int64_t{1}) != type.rank - 1 || !same_shape(type, graph.values[reshape.outputs[0]].type))
      continue;
    softmax->inputs[0] = flatten->inputs[0];
    softmax->outputs[0] = reshape.outputs[0];
    reshape.outputs.clear();  // no longer read: prune removes the Reshape and the Flatten
    made_by[softmax->outputs[0]] = made_by[reshape.inputs[0]];
  }
}

void merge_graph(Graph& graph) {
  if (may_merge(graph)) merge_nodes(graph);
  for (const auto& body : graph.subgraphs) merge_graph(*body);
}

}  // namespace

void merge_legacy_softmax(Model& model) {
  merge_graph(model.graph);
}

}  // namespace backplane::model
