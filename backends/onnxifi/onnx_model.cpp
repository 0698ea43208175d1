// SPDX-License-Identifier: Apache-2.0
#include "onnx_model.h"

#include <algorithm>
#include <set>

#include "wire.h"

namespace onnxifi_backend {
namespace {

using backplane::sdk::Error;
using wire::Message;
namespace field = wire::field;

Attribute read(const bp_attribute_t& from) {
  Attribute to;
  to.name = backplane::view::text(from.name);
  to.type = from.type;
  const auto each = [&](const auto* data, auto& out) { out.assign(data, data + from.count); };
  switch (from.type) {
    case BP_ATTR_INT:
    case BP_ATTR_INTS:
      each(static_cast<const int64_t*>(from.data), to.ints);
      break;
    case BP_ATTR_FLOAT:
    case BP_ATTR_FLOATS:
      each(static_cast<const float*>(from.data), to.floats);
      break;
    case BP_ATTR_STRING:
    case BP_ATTR_STRINGS:
      for (uint32_t i = 0; i < from.count; ++i)
        to.texts.emplace_back(backplane::view::text(static_cast<const bp_text_t*>(from.data)[i]));
      break;
    case BP_ATTR_TENSOR:
    case BP_ATTR_TENSORS:
      each(static_cast<const uint32_t*>(from.data), to.tensors);
      break;
    default:
      throw Error(BP_UNSUPPORTED,
                  "attribute '" + to.name +
                      "' is a graph, a type or a sparse tensor, which is not passed to ONNXIFI libraries");
  }
  return to;
}

// Returns a TensorProto with everything but the data.
Message tensor_head(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  Message message;
  for (const int64_t extent : extents) message.number(field::tensor::kDims, extent);
  message.number(field::tensor::kDataType, dtype);
  if (!name.empty()) message.text(field::tensor::kName, name);
  return message;
}

Message value_info(const std::string& name, bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  Message shape;
  for (const int64_t extent : extents)
    shape.message(field::type::kDim, Message().number(field::type::kDimValue, extent));
  Message tensor, type, info;
  tensor.number(field::type::kElemType, dtype).message(field::type::kShape, shape);
  type.message(field::type::kTensor, tensor);
  info.text(field::value::kName, name).message(field::value::kType, type);
  return info;
}

std::string_view bytes_of(const Value& weight) {
  const auto* const data = static_cast<const char*>(backplane::sdk::weight_data(weight));
  return {data, data == nullptr ? 0 : weight.weight()->bytes};
}

}  // namespace

// ---- nodes ---------------------------------------------------------------------------------------------------------

Attribute* OnnxNode::find(std::string_view attribute) {
  for (Attribute& each : attributes) {
    if (each.name == attribute) return &each;
  }
  return nullptr;
}

void OnnxNode::erase(std::string_view attribute) {
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                  [&](const Attribute& each) { return each.name == attribute; }),
                   attributes.end());
}

void OnnxNode::set(std::string_view attribute, int64_t value) {
  erase(attribute);
  attributes.push_back({std::string(attribute), BP_ATTR_INT, {value}, {}, {}, {}});
}
void OnnxNode::set(std::string_view attribute, const std::string& value) {
  erase(attribute);
  attributes.push_back({std::string(attribute), BP_ATTR_STRING, {}, {}, {value}, {}});
}
void OnnxNode::set(std::string_view attribute, std::vector<int64_t> values) {
  erase(attribute);
  attributes.push_back({std::string(attribute), BP_ATTR_INTS, std::move(values), {}, {}, {}});
}
void OnnxNode::set(std::string_view attribute, std::vector<float> values) {
  erase(attribute);
  attributes.push_back({std::string(attribute), BP_ATTR_FLOATS, {}, std::move(values), {}, {}});
}

int64_t OnnxNode::number(std::string_view attribute, int64_t otherwise) {
  const Attribute* const found = find(attribute);
  return found != nullptr && found->ints.size() == 1 ? found->ints[0] : otherwise;
}

std::string OnnxNode::text(std::string_view attribute, std::string_view otherwise) {
  const Attribute* const found = find(attribute);
  return found != nullptr && found->texts.size() == 1 ? found->texts[0] : std::string(otherwise);
}

// ---- the model -----------------------------------------------------------------------------------------------------

OnnxModel::OnnxModel(const Graph& graph) : graph_(graph), inputs_(graph.inputs()), outputs_(graph.outputs()) {
  // ONNX identifies values by name: a value without a name, or whose name is taken, gets a numbered name.
  for (uint32_t v = 0; v < graph.raw()->value_count; ++v) {
    const std::string own(graph.value(v).name());
    std::string name = own;
    for (uint32_t n = v; name.empty() || !taken_.insert(name).second; ++n) name = own + "." + std::to_string(n);
    names_.emplace(v, std::move(name));
  }
  for (const Node& node : graph.nodes()) add(node);
}

// Names values by their slots (x0, y0), so that equal nodes yield equal models: Device::query caches by content.
OnnxModel::OnnxModel(const Node& node) : graph_(node.graph()) {
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const Value value = node.input(i);
    if (!value || !names_.emplace(value.index(), "x" + std::to_string(i)).second) continue;
    if (value.weight() == nullptr) inputs_.push_back(value);
  }
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    const Value value = node.output(i);
    if (value && names_.emplace(value.index(), "y" + std::to_string(i)).second) outputs_.push_back(value);
  }
  add(node);
  nodes_[0].name.clear();
}

void OnnxModel::add(const Node& node) {
  OnnxNode made;
  made.op = node.op_type();
  made.domain = node.domain();
  made.name = node.name();
  made.since = node.since_version();
  for (uint32_t i = 0; i < node.input_count(); ++i) made.inputs.push_back({node.input(i), nullptr});
  for (uint32_t i = 0; i < node.output_count(); ++i) made.outputs.push_back({node.output(i), nullptr});
  for (uint32_t i = 0; i < node.raw().attribute_count; ++i)
    made.attributes.push_back(read(*bp_graph_attribute(node.graph(), node.raw().first_attribute + i)));
  nodes_.push_back(std::move(made));
}

std::vector<Value> OnnxModel::weights() const {
  std::vector<Value> result;
  std::set<uint32_t> seen;
  const auto add = [&](const Value& value) {
    if (value && value.weight() != nullptr && seen.insert(value.index()).second) result.push_back(value);
  };
  for (const OnnxNode& node : nodes_)
    for (const Operand& operand : node.inputs) add(operand.value);
  return result;
}

const Constant& OnnxModel::add_constant(bp_dtype_t dtype, std::vector<int64_t> extents, std::string bytes) {
  std::string name = "backplane.constant." + std::to_string(constants_.size());
  while (!taken_.insert(name).second) name += '_';
  constants_.push_back(
      std::make_unique<Constant>(Constant{std::move(name), dtype, std::move(extents), std::move(bytes)}));
  return *constants_.back();
}

// ---- bytes ---------------------------------------------------------------------------------------------------------

std::string OnnxModel::bytes(const Versions& versions, uint64_t max_inside) const {
  constexpr uint32_t kInitializersAlone = 4;  // the IR version from which initializers need not be inputs too
  const auto is_inside = [&](uint64_t bytes) { return max_inside != kNone && bytes <= max_inside; };
  Message graph;
  uint64_t inside_bytes = 0;
  for (const Value& weight : weights()) inside_bytes += is_inside(weight.weight()->bytes) ? weight.weight()->bytes : 0;
  graph.reserve(inside_bytes + inside_bytes / 64);
  const auto write_tensor = [&](uint32_t to, Message head, std::string_view bytes) {
    graph.message(to, head.text(field::tensor::kRawData, bytes));
  };
  const auto name_of = [&](const Operand& operand) {
    return operand.constant != nullptr ? operand.constant->name
           : operand.value             ? names_.at(operand.value.index())
                                       : std::string();
  };
  const auto tensor_of = [&](uint32_t index) {
    const bp_weight_t& weight = *bp_graph_weight(graph_.raw(), index);
    std::vector<int64_t> extents;
    for (uint32_t i = 0; i < weight.rank; ++i) extents.push_back(graph_.raw()->dims[weight.first_dim + i].extent);
    const void* data = weight.data;
    if (data == nullptr && weight.bytes != 0) {
      backplane::sdk::Detail detail;
      detail.check(graph_.raw()->api->weight_map(graph_.raw(), index, &data, detail.get()),
                   "weight " + std::to_string(index) + ", a tensor of an attribute, cannot be read");
    }
    Message message = tensor_head({}, weight.dtype, extents);
    return message.text(field::tensor::kRawData, {static_cast<const char*>(data), weight.bytes});
  };
  for (const OnnxNode& node : nodes_) {
    Message message;
    const auto write_operands = [&](uint32_t to, const std::vector<Operand>& operands) {
      size_t count = operands.size();
      while (count > 0 && !operands[count - 1]) --count;  // old parsers reject empty names at the end
      for (size_t i = 0; i < count; ++i) message.text(to, name_of(operands[i]));
    };
    write_operands(field::node::kInput, node.inputs);
    write_operands(field::node::kOutput, node.outputs);
    if (!node.name.empty()) message.text(field::node::kName, node.name);
    message.text(field::node::kOpType, node.op);
    if (!node.domain.empty()) message.text(field::node::kDomain, node.domain);
    for (const Attribute& attribute : node.attributes) {
      namespace f = field::attribute;
      Message one;
      one.text(f::kName, attribute.name).number(f::kType, attribute.type);
      for (const int64_t i : attribute.ints) one.number(attribute.type == BP_ATTR_INT ? f::kI : f::kInts, i);
      for (const float x : attribute.floats) one.real(attribute.type == BP_ATTR_FLOAT ? f::kF : f::kFloats, x);
      for (const std::string& s : attribute.texts) one.text(attribute.type == BP_ATTR_STRING ? f::kS : f::kStrings, s);
      for (const uint32_t t : attribute.tensors)
        one.message(attribute.type == BP_ATTR_TENSOR ? f::kT : f::kTensors, tensor_of(t));
      message.message(field::node::kAttribute, one);
    }
    graph.message(field::graph::kNode, message);
  }
  graph.text(field::graph::kName, "island");

  const auto info_of = [&](const Value& value) {
    return value_info(names_.at(value.index()), value.dtype(), value.extents());
  };
  std::set<uint32_t> outer;  // values that are inputs or outputs
  for (const Value& value : inputs_) {
    graph.message(field::graph::kInput, info_of(value));
    outer.insert(value.index());
  }
  for (const Value& value : weights()) {
    const bool inside = is_inside(value.weight()->bytes);
    if (!inside || versions.ir_version < kInitializersAlone) graph.message(field::graph::kInput, info_of(value));
    if (inside)
      write_tensor(field::graph::kInitializer, tensor_head(names_.at(value.index()), value.dtype(), value.extents()),
                   bytes_of(value));
  }
  for (const std::unique_ptr<Constant>& constant : constants_) {
    const bool inside = is_inside(constant->bytes.size());
    if (!inside || versions.ir_version < kInitializersAlone)
      graph.message(field::graph::kInput, value_info(constant->name, constant->dtype, constant->extents));
    if (inside)
      write_tensor(field::graph::kInitializer, tensor_head(constant->name, constant->dtype, constant->extents),
                   constant->bytes);
  }
  for (const Value& value : outputs_) {
    graph.message(field::graph::kOutput, info_of(value));
    outer.insert(value.index());
  }
  for (const OnnxNode& node : nodes_) {
    for (const Operand& operand : node.outputs) {
      if (operand.value && outer.insert(operand.value.index()).second)
        graph.message(field::graph::kValueInfo, info_of(operand.value));
    }
  }

  Message model;
  model.number(field::model::kIrVersion, versions.ir_version).text(field::model::kProducerName, "backplane");
  std::set<std::string> domains{""};
  for (const OnnxNode& node : nodes_) domains.insert(node.domain);
  for (const std::string& domain : domains) {
    const auto version = versions.opsets.find(domain);
    if (version == versions.opsets.end()) continue;
    Message opset;
    opset.text(field::opset::kDomain, domain).number(field::opset::kVersion, version->second);
    model.message(field::model::kOpsetImport, opset);
  }
  model.message(field::model::kGraph, graph);
  return model.take();
}

}  // namespace onnxifi_backend
