// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <numeric>

#include "ir/subgraphs.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

// Maps each value of the enclosing graph that the body refers to, to the body's value that refers to it.
std::map<ValueId, ValueId> references_of(const Graph& body) {
  std::map<ValueId, ValueId> references;
  for (ValueId v = 0; v < body.values.size(); ++v) {
    if (body.values[v].outer != BP_NONE) references.emplace(body.values[v].outer, v);
  }
  return references;
}

// Makes the body's nodes, and the bodies inside it, read stands_for[v] instead of v.
void replace_reads(Graph& body, const std::vector<ValueId>& stands_for) {
  const auto replace = [&](Operands& values) {
    for (ValueId& value : values) {
      if (value < stands_for.size()) value = stands_for[value];
    }
  };
  for (Node& node : body.nodes) replace(node.inputs);
  for (Call& call : body.calls) replace(call.node.inputs);
  for (const auto& inner : body.subgraphs) {
    for (Value& value : inner->values) {
      if (value.outer < stands_for.size()) value.outer = stands_for[value.outer];
    }
  }
}

void share_with(Graph& body, const Graph& graph, const Node& loop) {
  std::map<ValueId, ValueId> references;
  std::vector<ValueId> stands_for;
  // Inputs are (iteration, condition, carried…), outputs (condition, carried…, scanned…).
  for (size_t i = 2; i < loop.inputs.size() && i < body.inputs.size() && i <= body.outputs.size(); ++i) {
    const ValueId outer = loop.inputs[i];
    if (outer == BP_NONE || body.outputs[i - 1] != body.inputs[i]) continue;
    if (stands_for.empty()) {
      references = references_of(body);
      stands_for.resize(body.values.size());
      std::iota(stands_for.begin(), stands_for.end(), ValueId{0});
    }
    const auto [place, is_new] = references.try_emplace(outer, static_cast<ValueId>(body.values.size()));
    if (is_new) body.values[body.add_value(graph.values[outer].name, graph.values[outer].type)].outer = outer;
    stands_for[body.inputs[i]] = place->second;
  }
  if (!stands_for.empty()) replace_reads(body, stands_for);
}

void share_in(Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op_type != "Loop" || !node.domain.empty()) continue;
    for (Graph* body : bodies(graph, node)) share_with(*body, graph, node);
  }
  for (const auto& body : graph.subgraphs) share_in(*body);
}

}  // namespace

void share_carried(Model& model) {
  share_in(model.graph);
}

}  // namespace backplane::model
