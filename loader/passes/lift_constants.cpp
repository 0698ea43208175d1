// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/names.h"
#include "ir/tensor.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

Weight of_bytes(Model& model, bp_dtype_t dtype, std::vector<int64_t> dims, std::vector<char> bytes) {
  Weight weight;
  weight.dtype = dtype;
  weight.dims = std::move(dims);
  weight.owned = std::make_shared<const std::vector<char>>(std::move(bytes));
  weight.data = weight.owned->data();
  weight.bytes = weight.owned->size();
  weight.id = model.next_id++;
  return weight;
}

template <class T>
Weight of_numbers(Model& model, bp_dtype_t dtype, const std::vector<T>& numbers, bool scalar) {
  const char* first = reinterpret_cast<const char*>(numbers.data());
  std::vector<int64_t> dims;
  if (!scalar) dims.push_back(static_cast<int64_t>(numbers.size()));
  return of_bytes(model, dtype, std::move(dims), std::vector<char>(first, first + numbers.size() * sizeof(T)));
}

// Returns the value of a Constant node. Exactly one attribute must hold it, not counting those whose names begin with
// "__", which are for tools.
Result<Weight> constant(Model& model, const Graph& graph, const Node& node) {
  const auto is_value = [](const Attribute& attribute) { return !attribute.name.starts_with("__"); };
  const auto given = std::ranges::count_if(node.attributes, is_value);
  const Attribute* a = given == 1 ? &*std::ranges::find_if(node.attributes, is_value) : nullptr;
  if (a && a->type == BP_ATTR_TENSOR) return graph.weights[a->indices().front()];
  if (a && (a->type == BP_ATTR_INT || a->type == BP_ATTR_INTS)) {
    return of_numbers(model, BP_DTYPE_INT64, a->ints(), a->type == BP_ATTR_INT);
  }
  if (a && (a->type == BP_ATTR_FLOAT || a->type == BP_ATTR_FLOATS)) {
    return of_numbers(model, BP_DTYPE_FLOAT, a->floats(), a->type == BP_ATTR_FLOAT);
  }
  if (a && (a->type == BP_ATTR_STRING || a->type == BP_ATTR_STRINGS)) {
    const std::vector<std::string_view> strings(a->strings().begin(), a->strings().end());
    std::vector<int64_t> dims;
    if (a->type == BP_ATTR_STRINGS) dims.push_back(static_cast<int64_t>(strings.size()));
    return of_bytes(model, BP_DTYPE_STRING, std::move(dims), pack_strings(strings));
  }
  return Status(BP_INVALID_MODEL,
                node.label() + ": exactly one attribute must hold its value; " + std::to_string(given) + " are given")
      .with_node(node.id);
}

Status lift(Model& model, Graph& graph) {
  size_t kept = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.op_type != "Constant" || !node.domain.empty()) {
      if (kept != n) graph.nodes[kept] = std::move(node);
      ++kept;
      continue;
    }
    if (node.outputs.empty()) continue;
    BP_ASSIGN(Weight weight, constant(model, graph, node));
    Value& value = graph.values[node.outputs.front()];
    value.type = type_of(weight);
    value.weight = static_cast<WeightId>(graph.weights.size());
    graph.weights.push_back(std::move(weight));
  }
  graph.nodes.resize(kept);
  for (const auto& body : graph.subgraphs) BP_TRY(lift(model, *body));
  return {};
}

}  // namespace

Status lift_constants(Model& model) {
  return lift(model, model.graph);
}

}  // namespace backplane::model
