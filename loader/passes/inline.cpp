// SPDX-License-Identifier: Apache-2.0
// Replaces calls of the model's own functions by the nodes of their bodies. These nodes refer to the call, because a
// device may support it as a whole (coverage/coverage.h). The checker has already resolved each body node in the
// function's own opsets, so their operators are copied unchanged.
#include <algorithm>
#include <unordered_map>

#include "base/counted.h"
#include "base/names.h"
#include "passes/identity.h"
#include "passes/passes.h"

namespace backplane::model {
namespace {

// The most nodes and calls that inlining may process. A chain of functions, each of which calls the next one twice,
// grows exponentially; real models stay far below this limit.
constexpr uint64_t kMaxNodes = 1'000'000;
constexpr size_t kDepth = 64;  // maximum nesting of calls
constexpr std::string_view kDoing = "inlining functions";

using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

class Inliner {
 public:
  explicit Inliner(Model& model) : model_(model) {
    for (Function& f : model.functions) {
      functions_.emplace(FunctionKey{f.domain, f.name, f.overload}, &f);
      std::ranges::stable_sort(f.attribute_defaults, {}, &Attribute::name);
    }
  }

  // `depth` is the number of graphs that enclose `graph`.
  Status inline_graph(Graph& graph, uint32_t depth) {
    for (size_t i = 0; i < graph.subgraphs.size(); ++i) BP_TRY(inline_graph(*graph.subgraphs[i], depth + 1));
    depth_ = depth;
    const bool calls = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return callee(n); });
    if (!calls) return {};
    std::vector<Node> nodes = std::move(graph.nodes);
    graph.nodes.clear();
    for (Node& node : nodes) BP_TRY(add(graph, std::move(node), BP_NONE));
    return {};
  }

 private:
  // For each value of a function's body, the value of the graph into which the body is inlined.
  using ValueMap = std::vector<ValueId>;

  // A call that is being replaced by its function's body.
  struct Expansion {
    const Function& function;
    const Node& node;
    Graph& graph;        // contains the node
    uint32_t index;      // the call's index in graph.calls
    std::string suffix;  // makes names unique
  };

  Function* callee(const Node& node) const {
    const auto found = functions_.find({node.domain, node.op_type, node.overload});
    return found == functions_.end() ? nullptr : found->second;
  }

  // Adds a node, or the body of the function that it calls. `caller` is the call whose body contains the node.
  Status add(Graph& graph, Node node, uint32_t caller) {
    if (++nodes_ > kMaxNodes) {
      return Status(BP_UNSUPPORTED,
                    "the model's functions expand to more than " + std::to_string(kMaxNodes) + " nodes");
    }
    const Function* function = callee(node);
    if (!function) {
      node.call = caller;
      graph.nodes.push_back(std::move(node));
      return {};
    }
    if (std::find(stack_.begin(), stack_.end(), function) != stack_.end()) {
      return fail(node, "function " + in_quotes(function->name) + " calls itself");
    }
    if (stack_.size() >= kDepth) return fail(node, "function calls are nested deeper than " + std::to_string(kDepth));
    if (node.inputs.size() > function->inputs.size() || node.outputs.size() > function->outputs.size()) {
      return fail(node, counted(node.inputs.size(), "input") + " and " + counted(node.outputs.size(), "output") +
                            " where function " + in_quotes(function->name) + " has " +
                            std::to_string(function->inputs.size()) + " and " +
                            std::to_string(function->outputs.size()));
    }
    for (const std::string& required : function->attributes) {
      if (!node.find(required))
        return fail(node, "function " + in_quotes(function->name) + " needs attribute " + in_quotes(required));
    }
    model_.charge(sizeof(Call) + size_of(node), kDoing);
    stack_.push_back(function);
    graph.calls.push_back({node, caller});
    Status status = expand(graph, node, *function);
    stack_.pop_back();
    return status;
  }

  Status expand(Graph& graph, const Node& call_node, const Function& function) {
    const Graph& body = *function.body;
    const auto index = static_cast<uint32_t>(graph.calls.size() - 1);
    const Expansion call{function, call_node, graph, index, "#" + std::to_string(call_node.id)};
    constexpr ValueId kUnmapped = BP_NONE - 1;
    model_.charge(body.values.size() * sizeof(ValueId), kDoing);
    ValueMap map(body.values.size(), kUnmapped);
    for (size_t i = 0; i < body.inputs.size(); ++i) map[body.inputs[i]] = call_node.input(i);

    std::vector<std::pair<ValueId, ValueId>> passed;  // outputs of the body that are also an input or an earlier output
    for (size_t i = 0; i < body.outputs.size(); ++i) {
      const ValueId wanted = call_node.output(i);
      if (wanted == BP_NONE) continue;
      ValueId& mapped = map[body.outputs[i]];
      if (mapped == kUnmapped) {
        mapped = wanted;
      } else {
        passed.emplace_back(mapped, wanted);
      }
    }
    for (ValueId v = 0; v < map.size(); ++v) {
      if (map[v] != kUnmapped) continue;
      map[v] = add_value(graph, body.values[v], call);
    }
    for (const Node& node : body.nodes) {
      BP_ASSIGN(Node copy, clone(node, body, graph, map, call));
      BP_TRY(add(graph, std::move(copy), index));
    }
    for (const auto& [from, to] : passed) {
      if (from == BP_NONE)
        return fail(call_node, "function " + in_quotes(function.name) + " returns an input that the call omits");
      BP_TRY(add(graph, make_identity(model_, from, to), index));
    }
    return {};
  }

  Result<Node> clone(const Node& node, const Graph& from, Graph& to, const ValueMap& map, const Expansion& call) {
    model_.charge(size_of(node) + name_of_call(call).size() + 1, kDoing);
    Node copy = node;
    copy.id = model_.next_id++;
    copy.name = name_of_call(call) + "/" + (node.name.empty() ? node.op_type : node.name);
    bool changed = false;  // an input became omitted, or an attribute was resolved or dropped: not checked yet
    for (ValueId& input : copy.inputs) {
      if (input == BP_NONE) continue;
      input = map[input];
      changed = changed || input == BP_NONE;
    }
    for (ValueId& output : copy.outputs) output = output == BP_NONE ? BP_NONE : map[output];
    copy.attributes.clear();
    for (const Attribute& attribute : node.attributes) {
      if (attribute.type != 0) {
        copy.attributes.push_back(attribute);
        BP_TRY(move_indices(copy.attributes.back(), from, to, map, call));
        continue;
      }
      changed = true;
      const std::string& outer_name = attribute.strings().front();
      const Attribute* given = call.node.find(outer_name);
      const Graph* source_graph = &call.graph;
      if (!given) {
        const auto& defaults = call.function.attribute_defaults;
        const auto found = std::ranges::lower_bound(defaults, outer_name, {}, &Attribute::name);
        if (found == defaults.end() || found->name != outer_name)
          continue;  // neither passed nor with a default: omitted, as ONNX specifies
        given = &*found;
        source_graph = call.function.body.get();
      }
      model_.charge(size_of(*given), kDoing);
      copy.attributes.push_back(*given);
      copy.attributes.back().name = attribute.name;
      if (source_graph == &to) continue;
      if (given->type == BP_ATTR_GRAPH || given->type == BP_ATTR_GRAPHS) {
        return Status(BP_UNSUPPORTED,
                      call.node.label() + ": attribute " + in_quotes(outer_name) +
                          " passes a graph to a function's inner graph; inline the function in the model")
            .with_node(call.node.id);
      }
      BP_TRY(move_indices(copy.attributes.back(), *source_graph, to, map, call));
    }
    if (changed) BP_TRY(check_node(copy));
    return copy;
  }

  // Copies the tensors, graphs and types that an attribute's indices refer to into another graph, and updates the
  // indices.
  Status move_indices(Attribute& attribute, const Graph& from, Graph& to, const ValueMap& map, const Expansion& call) {
    auto* indices = std::get_if<std::vector<uint32_t>>(&attribute.data);
    if (!indices) return {};
    for (size_t k = 0; k < indices->size(); ++k) {
      uint32_t& index = (*indices)[k];
      if (attribute.type == BP_ATTR_GRAPH || attribute.type == BP_ATTR_GRAPHS) {
        BP_ASSIGN(auto body, clone_graph(*from.subgraphs[index], to, map, call));
        index = static_cast<uint32_t>(to.subgraphs.size());
        to.subgraphs.push_back(std::move(body));
      } else if (attribute.refers_to_type(k)) {
        model_.charge(size_of(from.attribute_types[index]), kDoing);
        to.attribute_types.push_back(from.attribute_types[index]);
        index = static_cast<uint32_t>(to.attribute_types.size() - 1);
      } else {
        add_weight(to, from.weights[index]);
        index = static_cast<uint32_t>(to.weights.size() - 1);
      }
    }
    return {};
  }

  // Copies a subgraph of a function's body into `parent`. `outer` maps the values of the graph that encloses `from`.
  Result<std::unique_ptr<Graph>> clone_graph(const Graph& from, Graph& parent, const ValueMap& outer,
                                             const Expansion& call) {
    if (++depth_ > kDeepestGraph)
      return fail(call.node, "graphs are nested deeper than " + std::to_string(kDeepestGraph) + " when it is inlined");
    auto copy = std::make_unique<Graph>();
    copy->name = from.name;
    copy->parent = &parent;
    model_.charge(sizeof(Graph) + from.name.size() + from.values.size() * sizeof(ValueId), kDoing);
    ValueMap map(from.values.size());
    for (ValueId v = 0; v < map.size(); ++v) {
      const Value& value = from.values[v];
      map[v] = add_value(*copy, value, call);
      if (value.weight != BP_NONE) {
        copy->values[v].weight = static_cast<WeightId>(copy->weights.size());
        add_weight(*copy, from.weights[value.weight]);
      }
      if (value.outer != BP_NONE) {
        copy->values[v].outer = outer[value.outer];
        if (outer[value.outer] == BP_NONE) map[v] = BP_NONE;  // refers to an input that the call omits
      }
    }
    copy->inputs = from.inputs;
    for (const ValueId output : from.outputs) {
      if (map[output] == BP_NONE) return fail(call.node, "a subgraph returns an input that the call omits");
      copy->outputs.push_back(map[output]);
    }
    for (const Node& node : from.nodes) {
      BP_ASSIGN(Node inner, clone(node, from, *copy, map, call));
      BP_TRY(add(*copy, std::move(inner), BP_NONE));
    }
    --depth_;
    return copy;
  }

  static const std::string& name_of_call(const Expansion& call) {
    return call.node.name.empty() ? call.function.name : call.node.name;
  }

  ValueId add_value(Graph& graph, const Value& value, const Expansion& call) {
    model_.charge(sizeof value + value.name.size() + call.suffix.size() + size_of(value.type), kDoing);
    return graph.add_value(value.name + call.suffix, value.type);
  }

  void add_weight(Graph& graph, const Weight& weight) {
    model_.charge(sizeof weight + weight.dims.size() * sizeof(int64_t) + weight.file.size(), kDoing);
    graph.weights.push_back(weight);
  }

  static Status fail(const Node& node, const std::string& what) {
    return Status(BP_INVALID_MODEL, node.label() + ": " + what).with_node(node.id);
  }

  Model& model_;
  std::map<FunctionKey, Function*> functions_;
  std::vector<const Function*> stack_;
  uint64_t nodes_ = 0;
  uint32_t depth_ = 0;  // nesting of the graph that nodes are being added to
};

}  // namespace

Status inline_functions(Model& model) {
  if (model.functions.empty()) return {};
  return Inliner(model).inline_graph(model.graph, 0);
}

}  // namespace backplane::model
