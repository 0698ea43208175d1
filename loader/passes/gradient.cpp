// SPDX-License-Identifier: Apache-2.0
// Replaces Gradient nodes in two stages. `bind` turns the names in a Gradient's attributes into data flow: the node's
// inputs become the tensors named by `xs` and `y`, and the attributes are removed. If the tensors passed to the node
// are not those that `xs` and `zs` name, `bind` copies the nodes that compute y, so that the copies compute y from the
// tensors passed; the node's inputs become the tensors passed for `xs`, and that y. `expand` then replaces each
// Gradient with nodes that compute it. If y depends on another Gradient, the other one is expanded in an earlier round.
#include "passes/gradient.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/counted.h"
#include "base/keyed_hash.h"
#include "base/names.h"
#include "ir/subgraphs.h"
#include "ops/infer/infer.h"
#include "ops/schema/schema.h"
#include "ops/upgrade/upgrade.h"
#include "passes/gradient_rules.h"
#include "passes/passes.h"
#include "passes/sort.h"

namespace backplane::model {
namespace {

constexpr uint32_t kMaxRounds = 16;       // one for each level of gradients of gradients
constexpr uint64_t kMaxWork = 1'000'000;  // nodes visited and inserted; real models need far fewer
constexpr uint32_t kLater = BP_NONE - 1;  // in made_by_: written by a node that was a Gradient when the round began

bool is_gradient(const Node& node) {
  return node.domain == "ai.onnx.preview.training" && node.op_type == "Gradient";
}

bool is_bound(const Node& node) {
  return !node.find("y");
}

bool is_float(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_FLOAT || dtype == BP_DTYPE_DOUBLE || dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
}

// Whether gradients pass through a value of this type. They do not pass through integers and bools, such as shapes or
// comparisons.
bool carries(const Type& type) {
  return type.kind != BP_KIND_TENSOR || type.dtype == BP_DTYPE_UNDEFINED || is_float(type.dtype);
}

Status invalid(const Node& node, const std::string& why) {
  return Status(BP_INVALID_MODEL, node.label() + ": " + why).with_node(node.id);
}

Status unsupported(const Node& node, const std::string& why) {
  return Status(BP_UNSUPPORTED, node.label() + ": " + why).with_node(node.id);
}

// Calls `visit` with each value that the node or its subgraphs read.
template <class Visit>
void each_read(const Graph& graph, const Node& node, Visit visit) {
  for (const ValueId input : node.inputs) {
    if (input != BP_NONE) visit(input);
  }
  for (const ValueId captured : captures(graph, node)) visit(captured);
}

// Refuses Gradient nodes outside the main graph, because the names in their attributes may refer to values of other
// graphs.
Status refuse_inside(const Graph& graph, const std::string& where) {
  for (const Node& node : graph.nodes) {
    if (is_gradient(node)) return unsupported(node, "is in " + where + "; move it to the main graph");
  }
  for (const auto& body : graph.subgraphs) BP_TRY(refuse_inside(*body, where));
  return {};
}

class Differentiation {
 public:
  explicit Differentiation(Model& model) : model_(model), graph_(model.graph) {}

  Status run() {
    BP_TRY(bind());
    for (uint32_t round = 0; round < kMaxRounds; ++round) {
      BP_TRY(ops::infer(model_));
      bool is_done = true;
      BP_TRY(expand_round(is_done));
      if (is_done) return {};
    }
    return Status(BP_UNSUPPORTED, "Gradient nodes depend on each other more than " + std::to_string(kMaxRounds) +
                                      " levels deep; use fewer levels");
  }

 private:
  // The values that a Gradient's attributes name. `values` lists those of `xs`, then those of `zs`, in the order of the
  // node's inputs.
  struct Named {
    uint64_t node;
    std::vector<ValueId> values;
    size_t xs;
    ValueId y;
  };

  Status spend(const Node& node, size_t nodes) {
    if ((work_ += nodes) <= kMaxWork) return {};
    return unsupported(node, "the gradients of this model take more than " + std::to_string(kMaxWork) +
                                 " steps to expand; use fewer Gradient nodes or a smaller graph between xs and y");
  }

  Status bind() {
    std::vector<Named> all;
    BP_TRY(look_up(all));
    hold(all);
    const auto is_in_place = [&](const Named& named, const Node& node) { return node.inputs == named.values; };
    std::vector<const Named*> elsewhere;
    for (const Named& named : all) {
      Node& node = find(named.node);
      BP_TRY(spend(node, graph_.nodes.size() / 64));
      if (!is_in_place(named, node)) {
        elsewhere.push_back(&named);
        continue;
      }
      std::vector<ValueId> inputs;
      for (size_t i = 0; i < named.xs; ++i) inputs.push_back(held(named.values[i]));
      inputs.push_back(held(named.y));
      set(node, inputs);
    }
    bool moved = false;
    BP_TRY(sort_nodes(graph_, moved));
    for (const Named* named : elsewhere) {
      BP_TRY(evaluate_elsewhere(*named));
      BP_TRY(sort_nodes(graph_, moved));
    }
    return {};
  }

  Status look_up(std::vector<Named>& all) const {
    std::unordered_map<std::string_view, ValueId, KeyedHash> by_name;
    std::vector<bool> exists(graph_.values.size());
    for (const ValueId input : graph_.inputs) exists[input] = true;
    for (const Node& node : graph_.nodes) {
      for (const ValueId output : node.outputs) {
        if (output != BP_NONE) exists[output] = true;
      }
    }
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      if (exists[v] || graph_.values[v].weight != BP_NONE) by_name.emplace(graph_.values[v].name, v);
    }
    for (const Node& node : graph_.nodes) {
      if (!is_gradient(node)) continue;
      Named named{node.id, {}, 0, BP_NONE};
      const auto add = [&](const std::string& attribute, const std::string& name, ValueId& value) -> Status {
        const auto found = by_name.find(name);
        if (found == by_name.end()) {
          return invalid(node,
                         "attribute '" + attribute + "' names " + in_quotes(name) +
                             ", which is not a value of the graph; name an input, an initializer or a node's output");
        }
        value = found->second;
        return {};
      };
      for (const char* list : {"xs", "zs"}) {
        const Attribute* names = node.find(list);
        if (!names) continue;
        for (const std::string& name : names->strings()) BP_TRY(add(list, name, named.values.emplace_back()));
        if (*list == 'x') named.xs = named.values.size();
      }
      BP_TRY(add("y", node.attr("y", ""), named.y));
      if (node.inputs.size() != named.values.size()) {
        return invalid(node, "has " + counted(node.inputs.size(), "input") + ", but xs and zs name " +
                                 counted(named.values.size(), "tensor"));
      }
      if (node.outputs.size() > named.xs) {
        return invalid(
            node, "has " + counted(node.outputs.size(), "output") + ", but xs names " + counted(named.xs, "tensor"));
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == BP_NONE) return invalid(node, "input " + std::to_string(i) + " is left out");
        const auto place = named.values.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(named.values.begin(), place, *place) != place) {
          return invalid(node, "xs and zs name " + in_quotes(graph_.values[*place].name) + " twice");
        }
        if (i < named.xs &&
            !(carries(graph_.values[node.inputs[i]].type) && carries(graph_.values[named.values[i]].type))) {
          return invalid(node, "input " + std::to_string(i) + ", or the tensor " +
                                   in_quotes(graph_.values[named.values[i]].name) +
                                   " that xs names for this input, is not a floating-point tensor");
        }
      }
      all.push_back(std::move(named));
    }
    return {};
  }

  // Makes all nodes except Gradients read the xs through a Dropout that drops nothing, so that type inference does
  // not fold values computed from a constant x. The prune pass removes the Dropouts.
  void hold(const std::vector<Named>& all) {
    for (const Named& named : all) {
      for (size_t i = 0; i < named.xs; ++i) held_.emplace(named.values[i], BP_NONE);
    }
    for (Node& node : graph_.nodes) {
      if (is_gradient(node)) continue;  // not bound yet, so its inputs are the tensors passed to it
      for (ValueId& input : node.inputs) {
        if (held_.contains(input)) input = hold(input);
      }
    }
    for (const auto& body : graph_.subgraphs) {
      for (Value& value : body->values) {
        if (held_.contains(value.outer)) value.outer = hold(value.outer);
      }
    }
    for (const auto& entry : held_) hold(entry.first);
    append();
  }

  ValueId hold(ValueId x) {
    ValueId& replacement = held_.at(x);
    if (replacement == BP_NONE) replacement = barrier(x);
    return replacement;
  }

  ValueId held(ValueId value) const {
    const auto found = held_.find(value);
    return found == held_.end() ? value : found->second;
  }

  ValueId barrier(ValueId x) {
    Node node;
    node.op_type = "Dropout";
    node.name = graph_.values[x].name + "/Dropout";
    node.id = model_.next_id++;
    node.schema = ops::newest_schema("", "Dropout");
    node.since_version = node.schema->since_version;
    node.inputs = {x};
    node.outputs = {graph_.add_value(node.name + "#" + std::to_string(node.id), graph_.values[x].type)};
    ops::write_defaults(node);
    added_.push_back(std::move(node));
    return added_.back().outputs[0];
  }

  void append() {
    for (Node& node : added_) graph_.nodes.push_back(std::move(node));
    added_.clear();
  }

  Node& find(uint64_t id) {
    return *std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [id](const Node& node) { return node.id == id; });
  }

  static void set(Node& gradient, const std::vector<ValueId>& inputs) {
    gradient.inputs = inputs;
    for (const char* name : {"xs", "y", "zs"}) gradient.erase(name);
  }

  // The inputs of a Gradient may differ from the tensors that it names. In that case, copies the nodes between the
  // named tensors and y, and lets the copies read the inputs.
  Status evaluate_elsewhere(const Named& named) {
    const Operands given = find(named.node).inputs;
    std::unordered_map<ValueId, ValueId> stands_for;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < given.size(); ++i) {
      const ValueId value = i < named.xs ? barrier(given[i]) : given[i];
      if (i < named.xs) inputs.push_back(value);
      stands_for.emplace(held(named.values[i]), value);
    }
    BP_TRY(spend(find(named.node), graph_.nodes.size()));

    const auto is_cut = [&](const Node& node) {
      return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return stands_for.contains(v); });
    };
    std::vector<bool> needed(graph_.values.size());
    std::vector<bool> is_path(graph_.nodes.size());
    needed[held(named.y)] = true;
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      is_path[n] = !is_cut(node) && std::any_of(node.outputs.begin(), node.outputs.end(),
                                                [&](ValueId v) { return v != BP_NONE && needed[v]; });
      if (is_path[n]) each_read(graph_, node, [&](ValueId v) { needed[v] = true; });
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!is_path[n]) continue;
      if (is_gradient(graph_.nodes[n]) && !is_bound(graph_.nodes[n])) {
        return unsupported(find(named.node), "has inputs other than the tensors that xs and zs name, and its y needs " +
                                                 graph_.nodes[n].label() +
                                                 ", which is expanded later; pass the tensors that xs and zs name");
      }
      bool depends = false;
      each_read(graph_, graph_.nodes[n], [&](ValueId v) { depends = depends || stands_for.contains(v); });
      if (!depends) continue;
      Node copy = graph_.nodes[n];
      if (!bodies(graph_, copy).empty()) {
        return unsupported(copy, "has a subgraph and would have to be computed again for " + find(named.node).label() +
                                     "; pass the tensors that xs and zs name");
      }
      copy.id = model_.next_id++;
      for (ValueId& input : copy.inputs) {
        if (const auto found = stands_for.find(input); found != stands_for.end()) input = found->second;
      }
      for (ValueId& output : copy.outputs) {
        if (output == BP_NONE) continue;
        const Value& old = graph_.values[output];
        Type type;  // without a shape, because the shape may differ
        type.kind = old.type.kind;
        type.dtype = old.type.dtype;
        type.element = old.type.element;
        const ValueId made = graph_.add_value(old.name + "#" + std::to_string(copy.id), std::move(type));
        stands_for.emplace(output, made);
        output = made;
      }
      added_.push_back(std::move(copy));
    }
    const auto y = stands_for.find(held(named.y));
    inputs.push_back(y == stands_for.end() ? named.y : y->second);
    set(find(named.node), inputs);
    append();
    return {};
  }

  Status expand_round(bool& is_done) {
    std::vector<Node> old = std::move(graph_.nodes);
    std::vector<Node> made;
    made.reserve(old.size());
    made_by_.assign(graph_.values.size(), BP_NONE);
    for (Node& node : old) {
      const bool is_candidate = is_gradient(node);
      bool is_expanded = false;
      if (is_candidate) BP_TRY(expand(node, made, is_expanded));
      is_done = is_done && is_expanded == is_candidate;
      for (const ValueId output : node.outputs) {
        if (output != BP_NONE) made_by_[output] = is_candidate ? kLater : static_cast<uint32_t>(made.size());
      }
      if (!is_expanded) made.push_back(std::move(node));
    }
    graph_.nodes = std::move(made);
    return {};
  }

  // Collects the nodes on which y depends, up to the xs, in order. Returns false if y depends on a Gradient of this
  // round.
  bool find_cone(const std::vector<Node>& nodes, ValueId y, const std::vector<bool>& is_x,
                 std::vector<uint32_t>& cone) const {
    std::vector<bool> seen(nodes.size());
    std::vector<ValueId> open{y};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      const uint32_t maker = is_x[value] ? BP_NONE : made_by_[value];
      if (maker == kLater) return false;
      if (maker == BP_NONE || seen[maker]) continue;
      seen[maker] = true;
      cone.push_back(maker);
      each_read(graph_, nodes[maker], [&](ValueId v) { open.push_back(v); });
    }
    std::sort(cone.begin(), cone.end());
    return true;
  }

  // Appends the nodes that compute the gradients to `made`, unless y depends on a Gradient of this round.
  Status expand(Node& node, std::vector<Node>& made, bool& is_expanded) {
    const ValueId y = node.inputs.back();
    const std::vector<ValueId> xs(node.inputs.begin(), node.inputs.end() - 1);
    std::vector<bool> moves(made_by_.size());  // for each value: whether it depends on an x and has a gradient
    for (const ValueId x : xs) moves[x] = true;
    std::vector<uint32_t> cone;
    is_expanded = find_cone(made, y, moves, cone);
    BP_TRY(spend(node, cone.size() + 1 + made_by_.size() / 64));
    if (!is_expanded) return {};
    if (!carries(graph_.values[y].type))
      return invalid(node, "its y, " + in_quotes(graph_.values[y].name) + ", is not a floating-point tensor");

    for (const uint32_t n : cone) {
      bool depends = false;
      each_read(graph_, made[n], [&](ValueId v) { depends = depends || moves[v]; });
      for (const ValueId output : made[n].outputs) {
        if (output != BP_NONE && depends && carries(graph_.values[output].type)) moves[output] = true;
      }
    }

    const size_t first = made.size();
    const std::vector<bool> no_reads;
    ops::Rewrite r(model_, graph_, made, no_reads, node);
    const auto filled = [&](double number, ValueId like) {
      const ValueId scalar = r.like(number, like);
      return r.rank(like) == 0 ? scalar : r.emit("Expand", {scalar, r.emit("Shape", {like})});
    };
    std::unordered_map<ValueId, ValueId> gradients{{y, filled(1, y)}};
    for (size_t at = cone.size(); at-- > 0;) BP_TRY(step(r, made[cone[at]], moves, gradients));

    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == BP_NONE) continue;
      const auto found = gradients.find(xs[i]);
      r.emit("Identity", {found == gradients.end() ? filled(0, xs[i]) : found->second});
      made.back().outputs = {node.outputs[i]};
    }
    for (size_t n = first; n < made.size(); ++n) ops::write_defaults(made[n]);
    return spend(node, made.size() - first);
  }

  // Emits the nodes that compute the gradients of a node's inputs from that of its output, and adds these to
  // `gradients`, whose key is the value that a gradient belongs to.
  Status step(ops::Rewrite& r, const Node& node, const std::vector<bool>& moves,
              std::unordered_map<ValueId, ValueId>& gradients) {
    for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
      const auto g = node.outputs[slot] == BP_NONE ? gradients.end() : gradients.find(node.outputs[slot]);
      if (g == gradients.end() || !moves[node.outputs[slot]]) continue;
      const GradientRule rule = gradient_rule(node);
      if (!rule || slot > 0) {
        return unsupported(node, "is between xs and y of " + r.node.label() +
                                     ", but has no known derivative; compute that gradient in the model, from "
                                     "operators such as Add, Mul and MatMul");
      }
      std::vector<bool> wanted;
      for (const ValueId input : node.inputs) wanted.push_back(input != BP_NONE && moves[input]);
      Step one{r, node, g->second, std::move(wanted), std::vector<ValueId>(node.inputs.size(), BP_NONE)};
      BP_TRY(rule(one));
      for (size_t i = 0; i < one.found.size(); ++i) {
        if (!one.wants(i) || one.found[i] == BP_NONE) continue;
        const auto [place, is_first] = gradients.emplace(one.node.inputs[i], one.found[i]);
        if (!is_first) place->second = r.emit("Add", {place->second, one.found[i]});
      }
      return {};
    }
    return {};
  }

  Model& model_;
  Graph& graph_;
  std::map<ValueId, ValueId> held_;  // for each x, the value that nodes read instead
  std::vector<Node> added_;
  std::vector<uint32_t> made_by_;  // for each value: index of the node that writes it, in this round
  uint64_t work_ = 0;
};

}  // namespace

Status differentiate(Model& model) {
  for (const Function& function : model.functions) {
    BP_TRY(refuse_inside(*function.body, "function " + in_quotes(function.name)));
  }
  for (const auto& body : model.graph.subgraphs) BP_TRY(refuse_inside(*body, "a subgraph"));
  if (std::none_of(model.graph.nodes.begin(), model.graph.nodes.end(), is_gradient)) return {};
  return Differentiation(model).run();
}

}  // namespace backplane::model
