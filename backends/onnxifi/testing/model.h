// SPDX-License-Identifier: Apache-2.0
// A small ONNX interpreter for the test libraries: float tensors, and operators in the forms of opset 8. It shares no
// code with the backend, whose models it parses.
#pragma once

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "indexed.h"

namespace vendor {

struct Field {
  uint32_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

inline std::vector<Field> fields(std::string_view in) {
  std::vector<Field> result;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in.empty()) throw ONNXIFI_STATUS_INVALID_PROTOBUF;
      const auto byte = static_cast<unsigned char>(in.front());
      in.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80u) == 0) break;
    }
    return value;
  };
  while (!in.empty()) {
    const uint64_t key = varint();
    Field field;
    field.number = static_cast<uint32_t>(key >> 3);
    if ((key & 7) == 0) {
      field.value = varint();
    } else {
      const uint64_t size = (key & 7) == 2 ? varint() : (key & 7) == 5 ? 4 : 8;
      if (size > in.size()) throw ONNXIFI_STATUS_INVALID_PROTOBUF;
      field.bytes = in.substr(0, size);
      in.remove_prefix(size);
    }
    result.push_back(field);
  }
  return result;
}

// A parsed model. Errors in it are thrown as an onnxStatus.
struct Model {
  std::vector<Node> nodes;
  std::vector<std::string> inputs, outputs;  // as listed; inputs may include weights
  std::map<std::string, Shape> shapes;       // of inputs and outputs
  std::map<std::string, Tensor> weights;     // initializers
  int64_t ir_version = 0, opset = 0;

  // With `has_indices`, the operators of indexed.h and int64 tensors are supported too.
  explicit Model(std::string_view bytes, bool has_indices) : has_indices_(has_indices) {
    std::string_view graph;
    for (const Field& f : fields(bytes)) {
      if (f.number == 1) ir_version = static_cast<int64_t>(f.value);
      if (f.number == 7) graph = f.bytes;
      if (f.number == 8) read_opset(f.bytes);
    }
    for (const Field& f : fields(graph)) {
      if (f.number == 1) read_node(f.bytes);
      if (f.number == 5) read_weight(f.bytes);
      if (f.number == 11) inputs.push_back(read_value(f.bytes));
      if (f.number == 12) outputs.push_back(read_value(f.bytes));
    }
    if (nodes.empty() || outputs.empty()) throw ONNXIFI_STATUS_INVALID_MODEL;
    if (ir_version < 4) {
      for (const auto& [name, tensor] : weights) {
        if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) throw ONNXIFI_STATUS_INVALID_MODEL;
      }
    }
  }

  void check(int64_t newest_ir, int64_t newest_opset) const {
    if (ir_version > newest_ir || opset > newest_opset || opset == 0) throw ONNXIFI_STATUS_UNSUPPORTED_VERSION;
    static const std::set<std::string> kOps = {"Add", "Relu", "MatMul", "Squeeze", "Unsqueeze", "ReduceSum"};
    for (const Node& node : nodes) {
      if (has_indices_ && is_indexed(node.op)) {
        if (shapes.count(node.outputs.at(0)) == 0) throw ONNXIFI_STATUS_UNSUPPORTED_SHAPE;  // not a graph output
        check_indexed(node, shapes.at(node.outputs[0]).size());
        continue;
      }
      if (kOps.count(node.op) == 0) throw ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
      const size_t wanted = node.op == "Add" || node.op == "MatMul" ? 2 : 1;
      if (node.inputs.size() != wanted || node.outputs.size() != 1) throw ONNXIFI_STATUS_INVALID_MODEL;
    }
    std::map<std::string, Shape> known = shapes;
    for (const auto& [name, tensor] : weights) known[name] = tensor.shape;
    for (const Node& node : nodes) {
      const Shape inferred = infer(node, known);
      const auto [declared, is_new] = known.emplace(node.outputs[0], inferred);
      if (!is_new && declared->second != inferred) throw ONNXIFI_STATUS_MISMATCHING_SHAPE;
    }
    for (const auto& [name, shape] : known) {
      if (shape.size() > 4) throw ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
    }
  }
  bool knows(uint64_t dtype) const {
    return dtype == ONNXIFI_DATATYPE_FLOAT32 || (has_indices_ && dtype == ONNXIFI_DATATYPE_INT64);
  }
  // Inputs that have no initializer.
  std::vector<std::string> free_inputs() const {
    std::vector<std::string> result;
    for (const std::string& name : inputs) {
      if (weights.count(name) == 0) result.push_back(name);
    }
    return result;
  }

  // `values` holds the inputs. Adds the weights and all computed values to it.
  void run(std::map<std::string, Tensor>& values) const {
    for (const auto& [name, tensor] : weights) values[name] = tensor;
    for (const Node& node : nodes) {
      Tensor& y = values[node.outputs[0]];
      y = is_indexed(node.op) ? compute_indexed(node, values, shapes.at(node.outputs[0])) : compute(node, values);
    }
  }

 private:
  void read_opset(std::string_view bytes) {
    std::string domain;
    int64_t version = 0;
    for (const Field& f : fields(bytes)) {
      if (f.number == 1) domain = f.bytes;
      if (f.number == 2) version = static_cast<int64_t>(f.value);
    }
    if (domain.empty()) opset = version;
  }
  void read_node(std::string_view bytes) {
    Node node;
    for (const Field& f : fields(bytes)) {
      if (f.number == 1) node.inputs.emplace_back(f.bytes);
      if (f.number == 2) node.outputs.emplace_back(f.bytes);
      if (f.number == 4) node.op = f.bytes;
      if (f.number != 5) continue;
      std::string name;
      Shape ints;
      for (const Field& a : fields(f.bytes)) {
        if (a.number == 1) name = a.bytes;
        if (a.number == 3 || a.number == 8) ints.push_back(static_cast<int64_t>(a.value));
      }
      node.ints[name] = ints;
    }
    nodes.push_back(node);
  }
  void read_weight(std::string_view bytes) {
    Tensor tensor;
    std::string name;
    uint64_t dtype = 0;
    std::string_view raw;
    for (const Field& f : fields(bytes)) {
      if (f.number == 1) tensor.shape.push_back(static_cast<int64_t>(f.value));
      if (f.number == 2) dtype = f.value;
      if (f.number == 8) name = f.bytes;
      if (f.number == 9) raw = f.bytes;
    }
    if (!knows(dtype)) throw ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
    if (raw.size() != count(tensor.shape) * size_of(dtype)) throw ONNXIFI_STATUS_INVALID_MODEL;
    tensor.data = numbers(dtype, raw.data(), count(tensor.shape));
    weights[name] = tensor;
  }
  std::string read_value(std::string_view bytes) {
    std::string name;
    Shape shape;
    for (const Field& f : fields(bytes)) {
      if (f.number == 1) name = f.bytes;
      if (f.number != 2) continue;
      for (const Field& type : fields(f.bytes)) {
        for (const Field& tensor : fields(type.bytes)) {
          if (tensor.number == 1 && !knows(tensor.value)) throw ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
          if (tensor.number != 2) continue;
          for (const Field& dim : fields(tensor.bytes)) {
            const std::vector<Field> extent = fields(dim.bytes);
            if (extent.size() != 1 || extent[0].number != 1) throw ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
            shape.push_back(static_cast<int64_t>(extent[0].value));
          }
        }
      }
    }
    shapes[name] = shape;
    return name;
  }

  // The output's shape. Throws for shapes and attributes that `compute` does not support.
  static Shape infer(const Node& node, const std::map<std::string, Shape>& shapes) {
    for (const std::string& name : node.inputs) {
      if (shapes.count(name) == 0) throw ONNXIFI_STATUS_INVALID_MODEL;
    }
    Shape shape = shapes.at(node.inputs[0]);
    const auto rank = static_cast<int64_t>(shape.size());
    const auto axes = node.ints.find("axes");
    const bool has_axes = axes != node.ints.end();
    if (is_indexed(node.op)) return shapes.at(node.outputs[0]);
    if (node.op == "Add") {  // the second shape is a suffix of the first
      const Shape& b = shapes.at(node.inputs[1]);
      if (b.size() > shape.size() || !std::equal(b.rbegin(), b.rend(), shape.rbegin()))
        throw ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
    } else if (node.op == "MatMul") {
      const Shape& b = shapes.at(node.inputs[1]);
      if (rank != 2 || b.size() != 2) throw ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
      if (shape[1] != b[0]) throw ONNXIFI_STATUS_INVALID_MODEL;
      shape[1] = b[1];
    } else if (node.op == "Unsqueeze") {
      if (!has_axes) throw ONNXIFI_STATUS_INVALID_MODEL;
      for (const int64_t axis : axes->second) {
        if (axis < 0 || axis > static_cast<int64_t>(shape.size())) throw ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
        shape.insert(shape.begin() + axis, 1);
      }
    } else if (node.op == "Squeeze") {
      Shape kept;
      for (int64_t i = 0; i < rank; ++i) {
        const int64_t extent = shape[static_cast<size_t>(i)];
        const bool is_listed = has_axes && std::count(axes->second.begin(), axes->second.end(), i) != 0;
        if (is_listed && extent != 1) throw ONNXIFI_STATUS_INVALID_MODEL;
        if (!is_listed && (has_axes || extent != 1)) kept.push_back(extent);
      }
      shape = kept;
    } else if (node.op == "ReduceSum") {  // over the last dimension
      const auto keeps = node.ints.find("keepdims");
      if (keeps != node.ints.end() && keeps->second != Shape{1}) throw ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
      if (rank == 0 || !has_axes || axes->second != Shape{rank - 1}) throw ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
      shape.back() = 1;
    }
    return shape;
  }

  static Tensor compute(const Node& node, const std::map<std::string, Tensor>& values) {
    const Tensor& x = values.at(node.inputs[0]);
    std::map<std::string, Shape> known;
    for (const std::string& name : node.inputs) known[name] = values.at(name).shape;
    Tensor y{infer(node, known), x.data};
    if (node.op == "Relu") {
      for (float& value : y.data) value = value < 0 ? 0 : value;  // NaN stays NaN
    } else if (node.op == "Add") {
      const Tensor& b = values.at(node.inputs[1]);
      for (size_t i = 0; i < y.data.size(); ++i) y.data[i] += b.data[i % b.data.size()];
    } else if (node.op == "MatMul") {
      const Tensor& b = values.at(node.inputs[1]);
      const auto m = static_cast<size_t>(x.shape[0]), k = static_cast<size_t>(x.shape[1]),
                 n = static_cast<size_t>(b.shape[1]);
      y.data.assign(m * n, 0);
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j)
          for (size_t l = 0; l < k; ++l) y.data[i * n + j] += x.data[i * k + l] * b.data[l * n + j];
    } else if (node.op == "ReduceSum") {
      const auto last = static_cast<size_t>(x.shape.back());
      y.data.assign(count(y.shape), 0);
      for (size_t i = 0; i < x.data.size(); ++i) y.data[i / last] += x.data[i];
    }
    return y;
  }

  bool has_indices_;
};

}  // namespace vendor
