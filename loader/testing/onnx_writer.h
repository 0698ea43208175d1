// SPDX-License-Identifier: Apache-2.0
// Writes small ONNX models as bytes, for tests: valid and, since nothing is checked here, invalid ones.
//
//   std::string bytes = model_bytes({{"", 17}}, graph({node("Relu", {"x"}, {"y"})}, {tensor_value("x", 1, {2, 3})},
//   {value("y")}));
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/wire.h"

namespace backplane::testing::onnx {

namespace field = model::field;
using model::wire::Writer;
using Texts = std::vector<std::string>;

// A message, and the number of the field that contains it.
struct Piece {
  uint32_t field;
  std::string bytes;
};

inline std::string attribute(std::string_view name, uint32_t type, auto&& write) {
  std::string out;
  Writer writer(out);
  writer.add_string(field::attribute::kName, name.data(), name.size());
  writer.add_int32(field::attribute::kType, static_cast<int32_t>(type));
  write(writer);
  return out;
}
inline std::string int_attribute(std::string_view name, int64_t value) {
  return attribute(name, 2, [&](Writer& w) { w.add_int64(field::attribute::kI, value); });
}
inline std::string float_attribute(std::string_view name, float value) {
  return attribute(name, 1, [&](Writer& w) { w.add_float(field::attribute::kF, value); });
}
inline std::string string_attribute(std::string_view name, const std::string& value) {
  return attribute(name, 3, [&](Writer& w) { w.add_string(field::attribute::kS, value); });
}
inline std::string ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  return attribute(name, 7, [&](Writer& w) {
    for (const int64_t value : values) w.add_int64(field::attribute::kInts, value);
  });
}
inline std::string floats_attribute(std::string_view name, const std::vector<float>& values) {
  return attribute(name, 6, [&](Writer& w) {
    for (const float value : values) w.add_float(field::attribute::kFloats, value);
  });
}
inline std::string tensor_attribute(std::string_view name, const std::string& tensor) {
  return attribute(name, 4, [&](Writer& w) { w.add_message(field::attribute::kT, tensor); });
}
inline std::string graph_attribute(std::string_view name, const std::string& graph) {
  return attribute(name, 5, [&](Writer& w) { w.add_message(field::attribute::kG, graph); });
}
// An attribute that takes its value from attribute `outer` of the call of the function.
inline std::string reference_attribute(std::string_view name, uint32_t type, const std::string& outer) {
  return attribute(name, type, [&](Writer& w) { w.add_string(field::attribute::kRefAttrName, outer); });
}

inline std::string node(std::string_view op, const Texts& inputs, const Texts& outputs, const Texts& attributes = {},
                        std::string_view domain = "", std::string_view name = "") {
  std::string out;
  Writer writer(out);
  for (const std::string& input : inputs) writer.add_string(field::node::kInput, input);
  for (const std::string& output : outputs) writer.add_string(field::node::kOutput, output);
  writer.add_string(field::node::kOpType, op.data(), op.size());
  if (!domain.empty()) writer.add_string(field::node::kDomain, domain.data(), domain.size());
  if (!name.empty()) writer.add_string(field::node::kName, name.data(), name.size());
  for (const std::string& attribute : attributes) writer.add_message(field::node::kAttribute, attribute);
  return out;
}

// An extent, or a symbol if it is constructed from a string.
struct Dim {
  Dim(int extent) : extent(extent) {}
  Dim(const char* symbol) : symbol(symbol) {}
  int64_t extent = -1;
  std::string symbol;
};

inline std::string value(std::string_view name) {
  std::string out;
  Writer(out).add_string(field::value_info::kName, name.data(), name.size());
  return out;
}
inline std::string tensor_type(uint32_t dtype, const std::vector<Dim>& dims) {
  std::string shape;
  for (const Dim& dim : dims) {
    std::string extent;
    Writer entry(extent);
    if (dim.symbol.empty()) {
      entry.add_int64(field::dim::kValue, dim.extent);
    } else {
      entry.add_string(field::dim::kParam, dim.symbol);
    }
    Writer(shape).add_message(field::shape::kDim, extent);
  }
  std::string tensor;
  Writer(tensor).add_int32(field::tensor_type::kElemType, static_cast<int32_t>(dtype));
  Writer(tensor).add_message(field::tensor_type::kShape, shape);
  std::string type;
  Writer(type).add_message(field::type::kTensor, tensor);
  return type;
}
inline std::string tensor_value(std::string_view name, uint32_t dtype, const std::vector<Dim>& dims) {
  std::string out = value(name);
  Writer(out).add_message(field::value_info::kType, tensor_type(dtype, dims));
  return out;
}
inline std::string type_attribute(std::string_view name, const std::string& type) {
  return attribute(name, 13, [&](Writer& w) { w.add_message(field::attribute::kTp, type); });
}

// A tensor's message without its data.
inline std::string tensor_head(std::string_view name, uint32_t dtype, const std::vector<int64_t>& dims) {
  std::string out;
  Writer writer(out);
  for (const int64_t extent : dims) writer.add_int64(field::tensor::kDims, extent);
  writer.add_int32(field::tensor::kDataType, static_cast<int32_t>(dtype));
  if (!name.empty()) writer.add_string(field::tensor::kName, name.data(), name.size());
  return out;
}
inline std::string raw_tensor(std::string_view name, uint32_t dtype, const std::vector<int64_t>& dims,
                              std::string_view bytes) {
  std::string out = tensor_head(name, dtype, dims);
  Writer(out).add_bytes(field::tensor::kRawData, bytes.data(), bytes.size());
  return out;
}
template <class T>
std::string tensor(std::string_view name, uint32_t dtype, const std::vector<int64_t>& dims,
                   const std::vector<T>& elements) {
  return raw_tensor(name, dtype, dims, {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)});
}
inline std::string external_tensor(std::string_view name, uint32_t dtype, const std::vector<int64_t>& dims,
                                   const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = tensor_head(name, dtype, dims);
  Writer writer(out);
  for (const auto& [key, text] : entries) {
    Writer entry(writer, field::tensor::kExternalData);
    entry.add_string(field::entry::kKey, key);
    entry.add_string(field::entry::kValue, text);
  }
  writer.add_int32(field::tensor::kDataLocation, 1);
  return out;
}

inline std::string graph(const Texts& nodes, const Texts& inputs, const Texts& outputs, const Texts& initializers = {},
                         const std::vector<Piece>& more = {}) {
  std::string out;
  Writer writer(out);
  for (const std::string& one : nodes) writer.add_message(field::graph::kNode, one);
  writer.add_string(field::graph::kName, "g");
  for (const std::string& one : initializers) writer.add_message(field::graph::kInitializer, one);
  for (const std::string& one : inputs) writer.add_message(field::graph::kInput, one);
  for (const std::string& one : outputs) writer.add_message(field::graph::kOutput, one);
  for (const Piece& piece : more) writer.add_message(piece.field, piece.bytes);
  return out;
}

using Opsets = std::vector<std::pair<std::string, int64_t>>;

inline void add_opsets(Writer& writer, uint32_t field, const Opsets& opsets) {
  for (const auto& [domain, version] : opsets) {
    Writer entry(writer, field);
    entry.add_string(field::opset::kDomain, domain);
    entry.add_int64(field::opset::kVersion, version);
  }
}

inline std::string function(std::string_view domain, std::string_view name, const Texts& inputs, const Texts& outputs,
                            const Texts& nodes, const Opsets& opsets, const Texts& attributes = {},
                            const Texts& attribute_defaults = {}) {
  std::string out;
  Writer writer(out);
  writer.add_string(field::function::kName, name.data(), name.size());
  writer.add_string(field::function::kDomain, domain.data(), domain.size());
  for (const std::string& one : inputs) writer.add_string(field::function::kInput, one);
  for (const std::string& one : outputs) writer.add_string(field::function::kOutput, one);
  for (const std::string& one : attributes) writer.add_string(field::function::kAttribute, one);
  for (const std::string& one : attribute_defaults) writer.add_message(field::function::kAttributeProto, one);
  for (const std::string& one : nodes) writer.add_message(field::function::kNode, one);
  add_opsets(writer, field::function::kOpsetImport, opsets);
  return out;
}

inline std::string model_bytes(const Opsets& opsets, const std::string& graph, const Texts& functions = {},
                               int64_t ir_version = 8) {
  std::string out;
  Writer writer(out);
  writer.add_int64(field::model::kIrVersion, ir_version);
  writer.add_string(field::model::kProducerName, "test");
  writer.add_message(field::model::kGraph, graph);
  add_opsets(writer, field::model::kOpsetImport, opsets);
  for (const std::string& one : functions) writer.add_message(field::model::kFunctions, one);
  return out;
}

}  // namespace backplane::testing::onnx
