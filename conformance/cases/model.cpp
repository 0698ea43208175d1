// SPDX-License-Identifier: Apache-2.0
#include "cases/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <stdexcept>
#include <string_view>

#include "cli/whole_file.h"
#include "judge/error_propagation.h"
#include "onnx/wire.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = 512u << 20;   // bytes; a process that runs graphs cut from a model reads all of it
constexpr uint64_t kLargestWeight = 1'000'000;  // elements

// An operator that cuts may contain. Its meaning has not changed since opset `since`.
struct Form {
  std::string_view op;
  uint32_t since;
  int least, most;  // number of inputs
  Attributes defaults;
  std::vector<std::string_view> others = {};  // attributes that have no default
};
const std::string kNotSet = "NOTSET";
const std::vector<std::string_view> kWindow = {"kernel_shape", "strides", "dilations", "pads"};
const Attributes kReduction = {{"keepdims", int64_t{1}}, {"noop_with_empty_axes", int64_t{0}}};
const Form kForms[] = {
    {"Abs", 6, 1, 1, {}},
    {"Add", 7, 2, 2, {}},
    {"AveragePool",
     7,
     1,
     1,
     {{"auto_pad", kNotSet}, {"ceil_mode", int64_t{0}}, {"count_include_pad", int64_t{0}}},
     kWindow},
    {"BatchNormalization", 9, 5, 5, {{"epsilon", 1e-5f}, {"momentum", 0.9f}, {"training_mode", int64_t{0}}}},
    {"Clip", 11, 1, 3, {}},
    {"Concat", 4, 1, INT_MAX, {}, {"axis"}},
    {"Conv", 1, 2, 3, {{"auto_pad", kNotSet}, {"group", int64_t{1}}}, kWindow},
    {"Div", 7, 2, 2, {}},
    {"Elu", 6, 1, 1, {{"alpha", 1.0f}}},
    {"Equal", 7, 2, 2, {}},
    {"Erf", 9, 1, 1, {}},
    {"Exp", 6, 1, 1, {}},
    {"Expand", 8, 2, 2, {}},
    {"Flatten", 1, 1, 1, {{"axis", int64_t{1}}}},
    {"Gather", 1, 2, 2, {{"axis", int64_t{0}}}},
    {"Gelu", 20, 1, 1, {{"approximate", std::string("none")}}},
    {"Gemm", 7, 2, 3, {{"alpha", 1.0f}, {"beta", 1.0f}, {"transA", int64_t{0}}, {"transB", int64_t{0}}}},
    {"GlobalAveragePool", 1, 1, 1, {}},
    {"GlobalMaxPool", 1, 1, 1, {}},
    {"Greater", 7, 2, 2, {}},
    {"HardSigmoid", 6, 1, 1, {{"alpha", 0.2f}, {"beta", 0.5f}}},
    {"HardSwish", 14, 1, 1, {}},
    {"Identity", 1, 1, 1, {}},
    {"InstanceNormalization", 6, 3, 3, {{"epsilon", 1e-5f}}},
    {"LayerNormalization", 17, 2, 3, {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}, {"stash_type", int64_t{1}}}},
    {"LeakyRelu", 6, 1, 1, {{"alpha", 0.01f}}},
    {"Less", 7, 2, 2, {}},
    {"Log", 6, 1, 1, {}},
    {"LogSoftmax", 13, 1, 1, {{"axis", int64_t{-1}}}},
    {"MatMul", 1, 2, 2, {}},
    {"Max", 8, 1, INT_MAX, {}},
    {"MaxPool", 1, 1, 1, {{"auto_pad", kNotSet}, {"ceil_mode", int64_t{0}}, {"storage_order", int64_t{0}}}, kWindow},
    {"Min", 8, 1, INT_MAX, {}},
    {"Mul", 7, 2, 2, {}},
    {"Neg", 6, 1, 1, {}},
    {"PRelu", 7, 2, 2, {}},
    {"Pow", 7, 2, 2, {}},
    {"Reciprocal", 6, 1, 1, {}},
    {"ReduceMax", 18, 1, 2, kReduction},
    {"ReduceMean", 18, 1, 2, kReduction},
    {"ReduceSum", 13, 1, 2, kReduction},
    {"Relu", 6, 1, 1, {}},
    {"Reshape", 5, 2, 2, {{"allowzero", int64_t{0}}}},
    {"Sigmoid", 6, 1, 1, {}},
    {"Slice", 10, 3, 5, {}},
    {"Softmax", 13, 1, 1, {{"axis", int64_t{-1}}}},
    {"Softplus", 1, 1, 1, {}},
    {"Sqrt", 6, 1, 1, {}},
    {"Squeeze", 13, 2, 2, {}},
    {"Sub", 7, 2, 2, {}},
    {"Sum", 8, 1, INT_MAX, {}},
    {"Tanh", 6, 1, 1, {}},
    {"Transpose", 1, 1, 1, {}, {"perm"}},
    {"Unsqueeze", 13, 2, 2, {}},
    {"Where", 9, 3, 3, {}},
};

const Attribute* find(const Attributes& attributes, std::string_view name) {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  return found == attributes.end() ? nullptr : &*found;
}

// nullopt for attribute types that no operator of kForms uses.
std::optional<Attribute> attribute_of(const onnx::AttributeProto& from) {
  switch (from.type()) {
    case onnx::AttributeProto::INT:
      return Attribute{from.name(), from.i()};
    case onnx::AttributeProto::FLOAT:
      return Attribute{from.name(), from.f()};
    case onnx::AttributeProto::STRING:
      return Attribute{from.name(), from.s()};
    case onnx::AttributeProto::INTS:
      return Attribute{from.name(), std::vector<int64_t>(from.ints().begin(), from.ints().end())};
    default:
      return std::nullopt;
  }
}

// Writes out the default strides, dilations and pads of a window. Their number depends on the number of spatial axes,
// which follows from kernel_shape or, without it, from the shape of the weight.
void write_out_window(const Model& model, ModelNode& node) {
  if (find(node.attributes, "kernel_shape") == nullptr) {
    const auto weight = node.inputs.size() > 1 ? model.weights.find(node.inputs[1]) : model.weights.end();
    if (weight == model.weights.end() || weight->second.extents.size() < 3) return;
    const Extents& extents = weight->second.extents;
    node.attributes.push_back({"kernel_shape", Extents(extents.begin() + 2, extents.end())});
  }
  const auto* kernel = std::get_if<std::vector<int64_t>>(&find(node.attributes, "kernel_shape")->value);
  if (kernel == nullptr) return;
  const size_t axes = kernel->size();
  const Attribute* automatic = find(node.attributes, "auto_pad");
  const auto* how = automatic == nullptr ? nullptr : std::get_if<std::string>(&automatic->value);
  const bool padded_by_pads = how != nullptr && *how == kNotSet;  // read now, because push_back below invalidates `how`
  for (const char* name : {"strides", "dilations"}) {
    if (find(node.attributes, name) == nullptr) node.attributes.push_back({name, Extents(axes, 1)});
  }
  if (find(node.attributes, "pads") == nullptr && padded_by_pads)
    node.attributes.push_back({"pads", Extents(2 * axes, 0)});
}

// Converts the node's attributes. Returns why the node cannot be used, as text to append to its operator, or an empty
// string.
std::string lift(const onnx::NodeProto& from, uint32_t opset, const Model& model, ModelNode& node) {
  if (!from.domain().empty() && from.domain() != "ai.onnx") return " of domain " + from.domain();
  const auto form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.op == node.op; });
  if (form == std::end(kForms) || find_error_propagation(node.op) == nullptr)
    return " (an operator that cuts do not use)";
  if (opset < form->since) return fmt::format(" in the form of operator set {}", opset);
  for (const onnx::AttributeProto& attribute : from.attribute()) {
    const bool known = find(form->defaults, attribute.name()) != nullptr ||
                       std::find(form->others.begin(), form->others.end(), attribute.name()) != form->others.end();
    std::optional<Attribute> taken = attribute_of(attribute);
    if (!known || !taken) return " with attribute " + attribute.name();
    node.attributes.push_back(std::move(*taken));
  }
  for (const Attribute& attribute : form->defaults) {
    const Attribute* given = find(node.attributes, attribute.name);
    if (given == nullptr) {
      node.attributes.push_back(attribute);
    } else if (given->value.index() != attribute.value.index()) {
      return " with attribute " + attribute.name;
    }
  }
  if (form->others == kWindow) write_out_window(model, node);
  const auto inputs = static_cast<int>(node.inputs.size());
  if (inputs < form->least || inputs > form->most) return fmt::format(" with {} inputs", inputs);
  for (int i = 0; i < inputs; ++i) {
    const bool omitted = node.inputs[static_cast<size_t>(i)].empty();
    if (omitted && (i < form->least || form->most == INT_MAX)) return fmt::format(" without input {}", i);
  }
  if (node.outputs.size() != 1 || node.outputs[0].empty()) return fmt::format(" with {} outputs", node.outputs.size());
  return "";
}

void read_shape(const onnx::ValueInfoProto& value, Model& model) {
  if (!value.type().has_tensor_type()) {
    model.is_float[value.name()] = false;
    return;
  }
  const auto& tensor = value.type().tensor_type();
  model.is_float[value.name()] = tensor.elem_type() == BP_DTYPE_FLOAT;
  if (tensor.elem_type() != BP_DTYPE_FLOAT || !tensor.has_shape()) return;
  Extents extents;
  for (const auto& dim : tensor.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 1) return;
    extents.push_back(dim.dim_value());
  }
  model.shapes[value.name()] = std::move(extents);
}

void read_weight(const onnx::TensorProto& tensor, const std::string& name, Model& model) {
  uint64_t count = 1;
  for (const int64_t extent : tensor.dims()) {
    if (extent < 0 || (count *= static_cast<uint64_t>(extent)) > kLargestWeight) return;
  }
  const int32_t dtype = tensor.data_type();
  if (dtype != BP_DTYPE_FLOAT && dtype != BP_DTYPE_INT64 && dtype != BP_DTYPE_INT32 && dtype != BP_DTYPE_BOOL) return;
  try {
    model.weights[name] = onnx::from_message(tensor);
  } catch (const onnx::Malformed&) {
    return;  // treated like a weight that is too large: a cut has an input instead, or leaves out its readers
  }
}

}  // namespace

std::vector<ModelFile> find_models(const std::vector<std::string>& folders) {
  std::map<std::string, fs::path> found;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder)) throw std::runtime_error(fmt::format("--models '{}' is not a folder", folder));
    std::error_code error;
    size_t count = 0;
    for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
      if (file->path().extension() != ".onnx" || !file->is_regular_file(error)) continue;
      std::string name = fs::relative(file->path(), folder).replace_extension().generic_string();
      if (!found.emplace(name, file->path()).second)
        throw std::runtime_error(fmt::format("--models has two models named '{}': '{}' and '{}'; rename one", name,
                                             found[name].string(), file->path().string()));
      ++count;
    }
    if (error) throw std::runtime_error(fmt::format("--models '{}': {}", folder, error.message()));
    if (count == 0) throw std::runtime_error(fmt::format("--models '{}' has no *.onnx", folder));
  }
  std::vector<ModelFile> files;
  for (auto& [name, path] : found) files.push_back({name, path});
  return files;
}

Model read_model(const fs::path& file) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  if (!error && bytes > kLargestFile)
    throw std::runtime_error(fmt::format("'{}' has {} MiB; cases can be cut from models of at most {} MiB",
                                         file.string(), bytes >> 20, kLargestFile >> 20));
  onnx::ModelProto proto;
  if (!proto.ParseFromString(cli::read_file(file, kLargestFile)))
    throw std::runtime_error(fmt::format("'{}' is not ONNX", file.string()));
  uint32_t opset = 1;
  for (const auto& one : proto.opset_import()) {
    if (one.domain().empty() || one.domain() == "ai.onnx") opset = static_cast<uint32_t>(one.version());
  }
  const onnx::GraphProto& graph = proto.graph();
  Model model;
  for (const auto& value : graph.input()) read_shape(value, model);
  for (const auto& value : graph.value_info()) read_shape(value, model);
  for (const auto& tensor : graph.initializer()) {
    model.is_float[tensor.name()] = tensor.data_type() == BP_DTYPE_FLOAT;
    model.shapes.erase(tensor.name());
    read_weight(tensor, tensor.name(), model);
  }
  for (const auto& node : graph.node()) {
    ModelNode one{
        node.op_type(), {node.input().begin(), node.input().end()}, {node.output().begin(), node.output().end()}, {}};
    if (node.op_type() == "Constant" && node.output_size() == 1 && node.attribute_size() == 1 &&
        node.attribute(0).name() == "value") {
      read_weight(node.attribute(0).t(), node.output(0), model);
      model.is_float[node.output(0)] = node.attribute(0).t().data_type() == BP_DTYPE_FLOAT;
      continue;
    }
    const std::string why = lift(node, opset, model, one);
    one.usable = why.empty();
    if (one.usable) {
      ++model.usable;
    } else {
      ++model.left_out[one.op + why];
    }
    model.nodes.push_back(std::move(one));
  }
  return model;
}

}  // namespace backplane::conform
