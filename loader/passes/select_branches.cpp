// SPDX-License-Identifier: Apache-2.0
// Exporters guard operators by conditions on shapes, such as an extent of 1, which inference computes. The branch that
// such an If takes becomes a part of the enclosing graph: nothing has to be decided in a run, and devices that do not
// support If can compute it.
#include <algorithm>

#include "ir/subgraphs.h"
#include "passes/identity.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

// Returns the constant that a value of `graph` refers to, in `graph` or in an enclosing graph. Null if the value is not
// a constant.
Weight* constant(Graph& graph, ValueId value) {
  Graph* owner = &graph;
  while (owner->values[value].weight == BP_NONE) {
    if (owner->values[value].outer == BP_NONE || !owner->parent) return nullptr;
    value = owner->values[value].outer;
    owner = owner->parent;
  }
  return &owner->weights[owner->values[value].weight];
}

// Whether the branch computes all that its If returns.
bool returns_all(const Graph& branch, const Node& node) {
  for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
    if (node.outputs[slot] != BP_NONE && branch.outputs[slot] == BP_NONE) return false;
  }
  return true;
}

// Moves the nodes, values, calls and subgraphs of a branch into the graph that encloses it.
class Splice {
 public:
  // Counts in `uses` how often the graph's subgraphs are referred to.
  Splice(Model& model, Graph& graph, std::vector<uint32_t>& uses, const Node& node, Graph& branch)
      : model_(model),
        graph_(graph),
        uses_(uses),
        node_(node),
        branch_(branch),
        map_(branch.values.size(), kUnmapped),
        bodies_(branch.subgraphs.size(), BP_NONE) {
    model.charge(map_.size() * sizeof(ValueId), kDoing);
    for (ValueId v = 0; v < map_.size(); ++v) {
      if (branch.values[v].outer != BP_NONE) map_[v] = branch.values[v].outer;
    }
  }

  // Returns the nodes that take the place of the If.
  std::vector<Node> nodes() {
    std::vector<std::pair<ValueId, ValueId>> passed;  // results that are constants, outer values or earlier results
    for (size_t slot = 0; slot < node_.outputs.size(); ++slot) {
      const ValueId wanted = node_.outputs[slot];
      if (wanted == BP_NONE) continue;
      const ValueId result = branch_.outputs[slot];
      if (map_[result] == kUnmapped && branch_.values[result].weight == BP_NONE)
        map_[result] = wanted;
      else
        passed.emplace_back(result, wanted);
    }
    const auto first_call = static_cast<uint32_t>(graph_.calls.size());
    const auto call_of = [&](uint32_t call) { return call == BP_NONE ? node_.call : call + first_call; };
    for (Call& call : branch_.calls) {
      move(call.node);
      call.caller = call_of(call.caller);
      graph_.calls.push_back(std::move(call));
    }
    for (Node& node : branch_.nodes) {
      move(node);
      node.call = call_of(node.call);
    }
    std::vector<Node> nodes = std::move(branch_.nodes);
    for (const auto& [result, wanted] : passed) nodes.push_back(identity(value(result), wanted));
    return nodes;
  }

 private:
  static constexpr ValueId kUnmapped = BP_NONE - 1;
  static constexpr std::string_view kDoing = "choosing branches";

  // The value of the enclosing graph that a value of the branch becomes.
  ValueId value(ValueId inner) {
    if (inner == BP_NONE) return BP_NONE;
    if (map_[inner] != kUnmapped) return map_[inner];
    Value& from = branch_.values[inner];
    std::string name = from.name + "#" + std::to_string(node_.id);  // another value of the graph may have its name
    model_.charge(sizeof from + name.size() + size_of(from.type), kDoing);
    const ValueId id = map_[inner] = graph_.add_value(std::move(name), std::move(from.type));
    if (from.weight != BP_NONE) graph_.values[id].weight = weight(from.weight);
    return id;
  }

  uint32_t weight(uint32_t inner) {
    model_.charge(sizeof(Weight), kDoing);
    graph_.weights.push_back(branch_.weights[inner]);
    return static_cast<uint32_t>(graph_.weights.size() - 1);
  }

  // A function call and a node of its body may refer to the same subgraph, which is moved once. A weight or type that
  // both refer to is copied for each.
  uint32_t body(uint32_t inner) {
    uint32_t& index = bodies_[inner];
    if (index == BP_NONE) {
      index = static_cast<uint32_t>(graph_.subgraphs.size());
      Graph& moved = *graph_.subgraphs.emplace_back(std::move(branch_.subgraphs[inner]));
      uses_.push_back(0);
      moved.parent = &graph_;
      for (Value& captured : moved.values) captured.outer = value(captured.outer);
    }
    ++uses_[index];
    return index;
  }

  uint32_t type(uint32_t inner) {
    model_.charge(size_of(branch_.attribute_types[inner]), kDoing);
    graph_.attribute_types.push_back(branch_.attribute_types[inner]);
    return static_cast<uint32_t>(graph_.attribute_types.size() - 1);
  }

  void move(Node& node) {
    for (ValueId& input : node.inputs) input = value(input);
    for (ValueId& output : node.outputs) output = value(output);
    for (Attribute& attribute : node.attributes) {
      auto* indices = std::get_if<std::vector<uint32_t>>(&attribute.data);
      if (!indices) continue;
      const bool has_bodies = attribute.type == BP_ATTR_GRAPH || attribute.type == BP_ATTR_GRAPHS;
      for (size_t k = 0; k < indices->size(); ++k) {
        uint32_t& index = (*indices)[k];
        index = has_bodies ? body(index) : attribute.refers_to_type(k) ? type(index) : weight(index);
      }
    }
  }

  Node identity(ValueId from, ValueId to) {
    Node node = make_identity(model_, from, to);
    node.call = node_.call;
    model_.charge(size_of(node), kDoing);
    return node;
  }

  Model& model_;
  Graph& graph_;
  std::vector<uint32_t>& uses_;
  const Node& node_;  // the If
  Graph& branch_;
  std::vector<ValueId> map_;      // for each value of the branch
  std::vector<uint32_t> bodies_;  // for each subgraph of the branch
};

// Calls visit(index) for each reference of the node to a subgraph.
template <class Visit>
void each_body(Node& node, Visit visit) {
  for (Attribute& attribute : node.attributes) {
    if (attribute.type != BP_ATTR_GRAPH && attribute.type != BP_ATTR_GRAPHS) continue;
    for (uint32_t& index : std::get<std::vector<uint32_t>>(attribute.data)) visit(index);
  }
}

class Selector {
 public:
  Selector(Model& model, Graph& graph) : model_(model), graph_(graph), uses_(graph.subgraphs.size()) {
    each_reference([&](uint32_t index) { ++uses_[index]; });
  }

  void select() {
    if (std::ranges::all_of(graph_.nodes, [&](const Node& node) { return find_taken(node) == BP_NONE; })) return;
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) add(std::move(node));
    drop_bodies();
  }

 private:
  template <class Visit>
  void each_reference(Visit visit) {
    for (Node& node : graph_.nodes) each_body(node, visit);
    for (Call& call : graph_.calls) each_body(call.node, visit);
  }

  // The branch that an If takes in every run, as an index into Graph::subgraphs. BP_NONE if the node is not an If, or
  // if no branch can replace it.
  uint32_t find_taken(const Node& node) {
    if (node.op_type != "If" || !node.domain.empty()) return BP_NONE;
    Weight* condition = constant(graph_, node.inputs[0]);
    if (!condition || condition->dtype != BP_DTYPE_BOOL || condition->bytes != 1) return BP_NONE;
    const bool is_true = *static_cast<const char*>(condition->data) != 0;
    const uint32_t taken = node.find(is_true ? "then_branch" : "else_branch")->indices()[0];
    if (uses_[taken] != 1 || !returns_all(*graph_.subgraphs[taken], node)) return BP_NONE;
    condition->consumed = true;
    return taken;
  }

  // Adds the node, or what replaces it. Branches are nested up to kDeepestGraph levels deep.
  void add(Node node) {
    const uint32_t taken = find_taken(node);
    if (taken == BP_NONE) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    const std::unique_ptr<Graph> branch = std::move(graph_.subgraphs[taken]);
    for (Node& inner : Splice(model_, graph_, uses_, node, *branch).nodes()) add(std::move(inner));
  }

  // Removes the subgraphs that nothing refers to any more.
  void drop_bodies() {
    std::vector<std::unique_ptr<Graph>> kept;
    std::vector<uint32_t> place(graph_.subgraphs.size(), BP_NONE);
    each_reference([&](uint32_t& index) {
      if (place[index] == BP_NONE) {
        place[index] = static_cast<uint32_t>(kept.size());
        kept.push_back(std::move(graph_.subgraphs[index]));
      }
      index = place[index];
    });
    graph_.subgraphs = std::move(kept);
  }

  Model& model_;
  Graph& graph_;
  std::vector<uint32_t> uses_;  // by subgraph: references of nodes and function calls
};

void select_in(Model& model, Graph& graph) {
  if (graph.subgraphs.empty()) return;
  Selector(model, graph).select();
  for (const auto& body : graph.subgraphs) select_in(model, *body);
}

}  // namespace

void select_branches(Model& model) {
  select_in(model, model.graph);
}

}  // namespace backplane::model
