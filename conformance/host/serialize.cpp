// SPDX-License-Identifier: Apache-2.0
#include "host/graph.h"
#include "schema/wire.h"

namespace backplane::conform {
namespace {

std::string name_of(uint32_t value) {
  return value == BP_NONE ? std::string() : "v" + std::to_string(value);
}

void add_attribute(const Attribute& attribute, onnx::NodeProto& node) {
  onnx::AttributeProto& out = *node.add_attribute();
  out.set_name(attribute.name);
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::INT);
    out.set_i(*i);
  } else if (const auto* f = std::get_if<float>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::FLOAT);
    out.set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::STRING);
    out.set_s(*s);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : *ints) out.add_ints(value);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value)) {
    out.set_type(onnx::AttributeProto::FLOATS);
    for (const float value : *floats) out.add_floats(value);
  }
}

void set_info(const GraphSpec& spec, uint32_t value, onnx::ValueInfoProto& out) {
  out.set_name(name_of(value));
  auto& tensor = *out.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(spec.values[value].dtype));
  auto& shape = *tensor.mutable_shape();
  for (const int64_t extent : spec.values[value].extents) shape.add_dim()->set_dim_value(extent);
}

}  // namespace

std::string serialize(const GraphSpec& spec) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(spec.opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("case");
  for (const NodeSpec& node : spec.nodes) {
    onnx::NodeProto& out = *graph.add_node();
    out.set_op_type(node.op_type);
    out.set_domain(node.domain);
    for (const uint32_t input : node.inputs) out.add_input(name_of(input));
    for (const uint32_t output : node.outputs) out.add_output(name_of(output));
    for (const Attribute& attribute : node.attributes) add_attribute(attribute, out);
  }
  for (uint32_t i = 0; i < spec.values.size(); ++i) {
    if (spec.values[i].weight) *graph.add_initializer() = onnx::to_message(*spec.values[i].weight, name_of(i));
  }
  for (const uint32_t input : spec.inputs) set_info(spec, input, *graph.add_input());
  for (const uint32_t output : spec.outputs) set_info(spec, output, *graph.add_output());
  return model.SerializeAsString();
}

}  // namespace backplane::conform
