// SPDX-License-Identifier: Apache-2.0
#include "ir/subgraphs.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

// Returns the body's value that refers to `outer`, a value of the enclosing graph. Adds it if there is none.
ValueId reference(Graph& body, const Graph& graph, ValueId outer) {
  for (ValueId v = 0; v < body.values.size(); ++v) {
    if (body.values[v].outer == outer) return v;
  }
  const ValueId added = body.add_value(graph.values[outer].name, graph.values[outer].type);
  body.values[added].outer = outer;
  return added;
}

// Makes the body's nodes, and the bodies inside it, read `to` instead of `from`.
void replace_reads(Graph& body, ValueId from, ValueId to) {
  const auto replace = [=](Operands& values) {
    for (ValueId& value : values) {
      if (value == from) value = to;
    }
  };
  for (Node& node : body.nodes) replace(node.inputs);
  for (Call& call : body.calls) replace(call.node.inputs);
  for (const auto& inner : body.subgraphs) {
    for (Value& value : inner->values) {
      if (value.outer == from) value.outer = to;
    }
  }
}

void share_in(Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op_type != "Loop" || !node.domain.empty()) continue;
    for (Graph* body : bodies(graph, node)) {
      // Inputs are (iteration, condition, carried…), outputs (condition, carried…, scanned…).
      for (size_t i = 2; i < node.inputs.size() && i < body->inputs.size() && i <= body->outputs.size(); ++i) {
        if (node.inputs[i] != BP_NONE && body->outputs[i - 1] == body->inputs[i])
          replace_reads(*body, body->inputs[i], reference(*body, graph, node.inputs[i]));
      }
    }
  }
  for (const auto& body : graph.subgraphs) share_in(*body);
}

}  // namespace

void share_carried(Model& model) {
  share_in(model.graph);
}

}  // namespace backplane::model
