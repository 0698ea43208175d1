// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/subgraphs.h"
#include "ops/schema/schema.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

// Whether the node returns its input: Identity, a cast to the same type, or a Dropout that drops nothing (its mask is
// not read, and training_mode is absent or a constant false). `resolve` returns the value that replaces a value.
template <class Resolve>
bool passes_through(Graph& graph, const Node& node, Resolve&& resolve) {
  if (!node.domain.empty() || node.outputs.empty() || node.outputs[0] == BP_NONE) return false;
  if (node.op_type == "Identity") return true;
  if (node.op_type == "Cast" || node.op_type == "CastLike") {
    const bp_dtype_t from = graph.values[node.inputs[0]].type.dtype;
    return from != BP_DTYPE_UNDEFINED && from == graph.values[node.outputs[0]].type.dtype;
  }
  if (node.op_type != "Dropout" || node.output(1) != BP_NONE) return false;
  const ValueId mode = node.input(2);
  if (mode == BP_NONE) return true;
  const WeightId weight = graph.values[resolve(mode)].weight;
  if (weight == BP_NONE) return false;
  Weight& constant = graph.weights[weight];
  if (constant.bytes != 1 || *static_cast<const char*>(constant.data) != 0) return false;
  constant.consumed = true;
  return true;
}

// Counts the reads of each value, including those by subgraphs and by the graph's outputs.
std::vector<uint32_t> count_reads(const Graph& graph) {
  std::vector<uint32_t> reads(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input != BP_NONE) ++reads[input];
    }
    for (const ValueId captured : captures(graph, node)) ++reads[captured];
  }
  for (const ValueId output : graph.outputs) {
    if (output != BP_NONE) ++reads[output];
  }
  return reads;
}

// Removes nodes whose results are not read, starting with the last. Also removes trailing outputs that are not read,
// because a mask would keep a Dropout from being removed.
void drop_dead(Graph& graph) {
  std::vector<uint32_t> reads = count_reads(graph);
  const auto unread = [&reads](ValueId value) { return value == BP_NONE || reads[value] == 0; };
  std::vector<bool> dead(graph.nodes.size());
  bool any = false;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    if (std::all_of(node.outputs.begin(), node.outputs.end(), unread)) {
      dead[n] = any = true;
      for (const ValueId input : node.inputs) {
        if (input != BP_NONE) --reads[input];
      }
      for (const ValueId captured : captures(graph, node)) --reads[captured];
      continue;
    }
    if (!node.schema) continue;
    while (node.outputs.size() > std::max(1u, node.schema->min_outputs) &&
           node.schema->outputs.size() >= node.outputs.size() &&
           node.schema->outputs[node.outputs.size() - 1].option == ops::Formal::kOptional &&
           unread(node.outputs.back())) {
      node.outputs.pop_back();
    }
  }
  size_t n = 0;
  if (any) std::erase_if(graph.nodes, [&](const Node&) { return dead[n++]; });
  for (ValueId v = 0; graph.parent && v < reads.size(); ++v) {
    if (reads[v] == 0) graph.values[v].outer = BP_NONE;
  }
}

// Removes nodes that return their input, where possible. Returns whether any were removed.
bool bypass(Graph& graph) {
  std::vector<bool> fixed(graph.values.size());  // outputs of the graph, which keep their names
  std::vector<uint32_t> made_by(graph.values.size(), BP_NONE);
  for (const ValueId output : graph.outputs) {
    if (output != BP_NONE) fixed[output] = true;
  }
  std::vector<ValueId> stands_for(graph.values.size());
  for (ValueId v = 0; v < stands_for.size(); ++v) stands_for[v] = v;
  const auto resolve = [&stands_for](ValueId v) {
    while (stands_for[v] != v) v = stands_for[v] = stands_for[stands_for[v]];
    return v;
  };
  std::vector<bool> gone(graph.nodes.size());
  bool any = false;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const ValueId output : node.outputs) {
      if (output != BP_NONE) made_by[output] = n;
    }
    if (!passes_through(graph, node, resolve)) continue;
    const ValueId from = resolve(node.inputs[0]);
    const ValueId to = node.outputs[0];
    if (!fixed[to]) {
      stands_for[to] = from;
    } else if (!fixed[from] && made_by[from] != BP_NONE) {
      // The preceding node writes the graph's output instead.
      for (ValueId& output : graph.nodes[made_by[from]].outputs) {
        if (output == from) output = to;
      }
      made_by[to] = made_by[from];
      stands_for[from] = to;
    } else {
      continue;  // the graph output is an input, a constant or another output, so the node must stay
    }
    gone[n] = true;
    any = true;
  }
  if (!any) return false;
  size_t n = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return gone[n++]; });
  const auto resolve_all = [&](Operands& values) {
    for (ValueId& value : values) {
      if (value != BP_NONE) value = resolve(value);
    }
  };
  for (Node& node : graph.nodes) resolve_all(node.inputs);
  for (Call& call : graph.calls) {
    resolve_all(call.node.inputs);
    resolve_all(call.node.outputs);
  }
  for (const auto& body : graph.subgraphs) {
    for (Value& value : body->values) {
      if (value.outer != BP_NONE) value.outer = resolve(value.outer);
    }
  }
  return true;
}

// Prunes inner graphs first, so that outer values that only their removed nodes read can be removed too.
void prune_graph(Graph& graph) {
  for (const auto& body : graph.subgraphs) prune_graph(*body);
  drop_dead(graph);
  if (bypass(graph)) drop_dead(graph);
}

}  // namespace

void prune(Model& model) {
  prune_graph(model.graph);
}

}  // namespace backplane::model
