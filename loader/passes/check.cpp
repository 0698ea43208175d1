// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/names.h"
#include "ir/subgraphs.h"
#include "ops/infer/rules.h"
#include "ops/schema/schema.h"
#include "passes/passes.h"
#include "passes/sort.h"

namespace backplane::model {
namespace {

using Opsets = std::map<std::string, uint32_t>;
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

Status wrong(const Node& node, const std::string& what) {
  return Status(BP_INVALID_MODEL, node.label() + ": " + what).with_node(node.id);
}

std::string allowed(uint32_t least, uint32_t most) {
  if (least == most) return std::to_string(least);
  if (most == UINT32_MAX) return std::to_string(least) + " or more";
  return std::to_string(least) + " to " + std::to_string(most);
}

// The form's name in messages, such as "Conv-11".
std::string form_name(const ops::Schema& schema) {
  return std::string(schema.name) + "-" + std::to_string(schema.since_version);
}

const ops::Formal* formal_at(const std::vector<ops::Formal>& formals, size_t slot) {
  if (slot < formals.size()) return &formals[slot];
  return !formals.empty() && formals.back().option == ops::Formal::kVariadic ? &formals.back() : nullptr;
}

// Removes omitted values from the end, but leaves `least` values. Variadic ones stay: Split and If depend on how many
// outputs they have.
void drop_omitted(Operands& values, size_t least, const std::vector<ops::Formal>* formals) {
  while (values.size() > least && values.back() == BP_NONE) {
    const ops::Formal* formal = formals ? formal_at(*formals, values.size() - 1) : nullptr;
    if (formal && formal->option == ops::Formal::kVariadic) return;
    values.pop_back();
  }
}

Status check_counts(Node& node) {
  // Keeps the required number of inputs, even omitted ones: Loop has two, and both may be omitted.
  drop_omitted(node.inputs, node.schema ? node.schema->min_inputs : 0, node.schema ? &node.schema->inputs : nullptr);
  drop_omitted(node.outputs, 0, node.schema ? &node.schema->outputs : nullptr);
  if (!node.schema) return {};
  const ops::Schema& schema = *node.schema;
  const auto form = [&] { return form_name(schema); };
  if (node.inputs.size() < schema.min_inputs || node.inputs.size() > schema.max_inputs) {
    return wrong(node, counted(node.inputs.size(), "input") + " where " + form() + " takes " +
                           allowed(schema.min_inputs, schema.max_inputs));
  }
  // Exporters omit results that are not read, even required ones. But passes need at least one output.
  if (node.outputs.size() > schema.max_outputs || (node.outputs.empty() && schema.min_outputs > 0)) {
    return wrong(node, counted(node.outputs.size(), "output") + " where " + form() + " has " +
                           allowed(schema.min_outputs, schema.max_outputs));
  }
  for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
    const ops::Formal* formal = formal_at(schema.inputs, slot);
    if (node.inputs[slot] == BP_NONE && formal && formal->option != ops::Formal::kOptional) {
      return wrong(node, "input " + std::to_string(slot) + " ('" + std::string(formal->name) + "') is left out, but " +
                             form() + " needs it");
    }
  }
  return {};
}

// Adds the values of required outputs that exporters omit, so that every pass and every device finds them.
void add_omitted(Graph& graph, Node& node) {
  if (!node.schema) return;
  const ops::Schema& schema = *node.schema;
  if (node.outputs.size() < schema.min_outputs) node.outputs.resize(schema.min_outputs, BP_NONE);
  for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
    const ops::Formal* formal = formal_at(schema.outputs, slot);
    if (node.outputs[slot] == BP_NONE && formal && formal->option == ops::Formal::kRequired)
      node.outputs[slot] = graph.add_value(std::string(formal->name) + "#" + std::to_string(node.id));
  }
}

// `in_function` allows attributes that refer to an attribute of the call of a function.
Status check_attributes(const Node& node, bool in_function) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.type != 0 || in_function) continue;
    return wrong(node, "attribute " + in_quotes(attribute.name) + " refers to attribute " +
                           in_quotes(attribute.strings().front()) + " of a function's call, but no call sets it");
  }
  if (!node.schema) return {};
  const ops::Schema& schema = *node.schema;
  const auto form = [&] { return form_name(schema); };
  for (const Attribute& attribute : node.attributes) {
    const ops::AttributeRule* rule = schema.attribute(attribute.name);
    if (!rule) {
      if (attribute.name.starts_with("__")) continue;  // ONNX reserves such names for tools
      return wrong(node, form() + " has no attribute " + in_quotes(attribute.name));
    }
    if (attribute.type != rule->type && attribute.type != 0) {
      return wrong(node, "attribute " + in_quotes(attribute.name) + " has type " +
                             std::string(ops::attribute_type_name(attribute.type)) + ", but " + form() + " needs " +
                             std::string(ops::attribute_type_name(rule->type)));
    }
  }
  for (const ops::AttributeRule& rule : schema.attributes) {
    if (rule.required && !node.find(rule.name)) {
      return wrong(node, form() + " needs attribute " + in_quotes(rule.name));
    }
  }
  return {};
}

class Checker {
 public:
  explicit Checker(Model& model) : model_(model) {
    for (const Function& f : model.functions) functions_.emplace(f.domain, f.name, f.overload);
  }

  Status check_model() {
    std::set<FunctionKey> seen;
    for (const Function& f : model_.functions) {
      if (!seen.emplace(f.domain, f.name, f.overload).second)
        return Status(BP_INVALID_MODEL, "two of the model's functions have the same domain, name and overload: " +
                                            std::string(domain_name(f.domain)) + ", " + in_quotes(f.name) + " and " +
                                            in_quotes(f.overload));
    }
    BP_TRY(check_ir_version());
    BP_TRY(check_opsets(model_.opsets));
    BP_TRY(check_graph(model_.graph, model_.opsets, false));
    if (model_.graph.outputs.empty())
      return Status(BP_INVALID_MODEL, "graph " + in_quotes(model_.graph.name) + " has no outputs");
    for (Function& function : model_.functions) {
      const std::string name = "function " + in_quotes(function.name);
      if (Status status = check_function(function); !status.ok()) return std::move(status).context(name);
    }
    return {};
  }

 private:
  // Refuses IR versions (versions of ONNX's file format) that are newer than this build: they may change the meaning of
  // fields. Version 0 means that an early model states none.
  Status check_ir_version() const {
    const std::string version = "IR version " + std::to_string(model_.ir_version);
    if (model_.ir_version < 0) return Status(BP_INVALID_MODEL, version + " is negative");
    if (model_.ir_version > ops::kNewestIrVersion) {
      return Status(BP_UNSUPPORTED, version + " is newer than " + std::to_string(ops::kNewestIrVersion) +
                                        ", the newest that this build supports: save the model with an older one");
    }
    return {};
  }

  Status check_opsets(const Opsets& opsets) const {
    for (const auto& [domain, version] : opsets) {
      const uint32_t newest = ops::newest_opset(domain);
      if (newest > 0 && version > newest) {
        return Status(BP_UNSUPPORTED, "opset " + std::to_string(version) + " of " + std::string(domain_name(domain)) +
                                          " is newer than " + std::to_string(newest) +
                                          ", the newest that this build supports: export the model with an older one");
      }
    }
    return {};
  }

  Status check_function(Function& function) {
    BP_TRY(check_opsets(function.opsets));
    if (function.body->inputs.size() !=
        std::set<ValueId>(function.body->inputs.begin(), function.body->inputs.end()).size()) {
      return Status(BP_INVALID_MODEL, "two of its inputs have the same name");
    }
    return check_graph(*function.body, function.opsets, true);
  }

  Status check_graph(Graph& graph, const Opsets& opsets, bool in_function) {
    for (Node& node : graph.nodes) {
      BP_TRY(resolve(node, opsets));
      BP_TRY(check_counts(node));
      add_omitted(graph, node);
      BP_TRY(check_attributes(node, in_function));
    }
    BP_TRY(check_values(graph));
    for (const auto& body : graph.subgraphs) BP_TRY(check_graph(*body, opsets, in_function));
    bool moved = false;
    BP_TRY(sort_nodes(graph, moved));
    if (moved) {
      model_.note("the nodes of graph " + in_quotes(graph.name) + " are not in topological order in the file: sorted");
    }
    return {};
  }

  // Finds the form of the operator that is valid in `opsets`, those of the model or of a function.
  Status resolve(Node& node, const Opsets& opsets) {
    const std::string domain(domain_name(node.domain));
    const auto opset = opsets.find(node.domain);
    if (functions_.contains({node.domain, node.op_type, node.overload})) {
      node.since_version = opset == opsets.end() ? 1 : opset->second;
      return {};
    }
    if (opset == opsets.end()) {
      return wrong(node, "the model imports no opset of " + domain);
    }
    if (ops::newest_opset(node.domain) == 0) {  // foreign domain: only devices can interpret its operators
      node.since_version = opset->second;
      return {};
    }
    const ops::Schema* schema = ops::find_schema(node.domain, node.op_type, opset->second);
    if (!schema && ops::foreign_rule(node.domain, node.op_type)) {  // in ONNX's domain, but not defined by ONNX
      node.since_version = 1;
      return {};
    }
    if (!schema) {
      const ops::Schema* known = ops::newest_schema(node.domain, node.op_type);
      while (known && known->older) known = known->older;
      std::string text = "no operator " + in_quotes(node.op_type) + " exists in opset " +
                         std::to_string(opset->second) + " of " + domain;
      if (known) text += "; it came with opset " + std::to_string(known->since_version);
      return wrong(node, text);
    }
    // A form marked deprecated only discourages the use of the operator. It means the same as the previous form.
    if (schema->deprecated && schema->older) {
      const std::string note = "operator " + std::string(schema->name) + " has been deprecated since opset " +
                               std::to_string(schema->since_version) + " of " + domain;
      model_.note(note);
      schema = schema->older;
    }
    node.schema = schema;
    node.since_version = schema->since_version;
    return {};
  }

  // Checks that each value has at most one producer, and that each value that is read has one.
  static Status check_values(const Graph& graph) {
    constexpr uint32_t kGiven = BP_NONE - 1;
    std::vector<uint32_t> made_by(graph.values.size(), BP_NONE);
    for (size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].weight != BP_NONE || graph.values[v].outer != BP_NONE) made_by[v] = kGiven;
    }
    for (const ValueId input : graph.inputs) made_by[input] = kGiven;
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId output : graph.nodes[n].outputs) {
        if (output == BP_NONE) continue;
        if (made_by[output] != BP_NONE) {
          return wrong(graph.nodes[n],
                       "makes value " + in_quotes(graph.values[output].name) + ", which " +
                           (made_by[output] == kGiven ? std::string("is an input or initializer of the graph")
                                                      : graph.nodes[made_by[output]].label() + " makes too"));
        }
        made_by[output] = n;
      }
    }
    for (const Node& node : graph.nodes) {
      for (const ValueId input : node.inputs) {
        if (input != BP_NONE && made_by[input] == BP_NONE) {
          return wrong(node, "reads value " + in_quotes(graph.values[input].name) +
                                 ", which no node, input or initializer provides");
        }
      }
      for (const ValueId captured : captures(graph, node)) {
        if (made_by[captured] == BP_NONE) {
          return wrong(node, "a subgraph reads value " + in_quotes(graph.values[captured].name) +
                                 ", which no node, input or initializer provides");
        }
      }
    }
    for (const ValueId output : graph.outputs) {
      if (output == BP_NONE || made_by[output] == BP_NONE) {
        return Status(BP_INVALID_MODEL, "output " + in_quotes(output == BP_NONE ? "" : graph.values[output].name) +
                                            " of graph " + in_quotes(graph.name) +
                                            " is a value that no node, input or initializer provides");
      }
    }
    return {};
  }

  Model& model_;
  std::set<FunctionKey> functions_;
};

}  // namespace

Status check_node(Node& node) {
  BP_TRY(check_counts(node));
  return check_attributes(node, false);
}

Status check(Model& model) {
  return Checker(model).check_model();
}

}  // namespace backplane::model
