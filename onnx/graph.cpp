// SPDX-License-Identifier: Apache-2.0
#include "onnx/graph.h"

#include "backplane/graph.h"
#include "onnx/wire.h"

namespace backplane::onnx {
namespace {

// A graph with the names of its values. A body's names get a prefix to differ from those of the outer graph, except for
// captured values, which keep theirs.
struct Scope {
  const GraphSpec& spec;
  std::string prefix;
  const Scope* around = nullptr;

  std::string name_of(uint32_t value) const {
    if (value == BP_NONE) return "";
    const uint32_t outer = spec.values[value].outer;
    return outer != BP_NONE && around != nullptr ? around->name_of(outer) : prefix + "v" + std::to_string(value);
  }
};

void set_graph(const Scope& scope, GraphProto& out);

void add_attribute(const Scope& scope, const std::string& node_name, const Attribute& attribute, NodeProto& node) {
  AttributeProto& out = *node.add_attribute();
  out.set_name(attribute.name);
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
    out.set_type(AttributeProto::INT);
    out.set_i(*i);
  } else if (const auto* f = std::get_if<float>(&attribute.value)) {
    out.set_type(AttributeProto::FLOAT);
    out.set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
    out.set_type(AttributeProto::STRING);
    out.set_s(*s);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    out.set_type(AttributeProto::INTS);
    for (const int64_t value : *ints) out.add_ints(value);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value)) {
    out.set_type(AttributeProto::FLOATS);
    for (const float value : *floats) out.add_floats(value);
  } else if (const auto* body = std::get_if<std::shared_ptr<const GraphSpec>>(&attribute.value)) {
    out.set_type(AttributeProto::GRAPH);
    set_graph({**body, node_name + "." + attribute.name + ".", &scope}, *out.mutable_g());
  }
}

void set_info(const Scope& scope, uint32_t value, ValueInfoProto& out) {
  const ValueSpec& spec = scope.spec.values[value];
  out.set_name(scope.name_of(value));
  auto& tensor = *out.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(spec.dtype));
  auto& shape = *tensor.mutable_shape();
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    auto& dim = *shape.add_dim();
    if (spec.extents[i] >= 0)
      dim.set_dim_value(spec.extents[i]);
    else if (i < spec.symbols.size() && !spec.symbols[i].empty())
      dim.set_dim_param(spec.symbols[i]);
  }
}

void set_graph(const Scope& scope, GraphProto& out) {
  const GraphSpec& spec = scope.spec;
  out.set_name("case");
  for (size_t n = 0; n < spec.nodes.size(); ++n) {
    const NodeSpec& node = spec.nodes[n];
    NodeProto& to = *out.add_node();
    to.set_op_type(node.op_type);
    to.set_domain(node.domain);
    for (const uint32_t input : node.inputs) to.add_input(scope.name_of(input));
    for (const uint32_t output : node.outputs) to.add_output(scope.name_of(output));
    const std::string name = scope.prefix + "n" + std::to_string(n);
    for (const Attribute& attribute : node.attributes) add_attribute(scope, name, attribute, to);
  }
  for (uint32_t i = 0; i < spec.values.size(); ++i) {
    if (spec.values[i].weight) *out.add_initializer() = to_message(*spec.values[i].weight, scope.name_of(i));
  }
  for (const uint32_t input : spec.inputs) set_info(scope, input, *out.add_input());
  for (const uint32_t output : spec.outputs) set_info(scope, output, *out.add_output());
}

}  // namespace

std::string serialize(const GraphSpec& spec) {
  ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(spec.opset);
  set_graph({spec, ""}, *model.mutable_graph());
  return model.SerializeAsString();
}

}  // namespace backplane::onnx
