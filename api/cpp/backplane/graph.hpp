// SPDX-License-Identifier: Apache-2.0
// Convenient access to a bp_graph_t, for backends and frameworks. A view is a pointer and an index: copy it freely. It
// is valid as long as the graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backplane/graph.h"

namespace backplane::view {

inline std::string_view text(bp_text_t t) {
  return t.size == 0 ? std::string_view() : std::string_view(t.data, t.size);
}
inline bp_text_t text(std::string_view s) {
  return bp_text_t{s.data(), s.size()};
}

// Bits of one element; 0 for strings and unknown types. Types below 8 bits are packed.
inline uint32_t dtype_bits(bp_dtype_t dtype) {
  static constexpr uint8_t kBits[] = {0,  32,  8,  8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64,
                                      64, 128, 16, 8, 8,  8,  8,  4,  4, 4, 8,  2,  2};
  return dtype < sizeof kBits ? kBits[dtype] : 0;
}

// The name of a type, spelled as in ONNX's TensorProto.DataType, but in lower case.
inline std::string_view dtype_name(bp_dtype_t dtype) {
  static constexpr std::string_view kNames[] = {
      "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  return dtype < sizeof kNames / sizeof *kNames ? kNames[dtype] : "unknown";
}

// Bytes of a dense tensor. 0 if any extent is 0; otherwise nullopt if an extent is negative, or if the number of bits
// is above INT64_MAX. Elements of a type without a fixed width, such as strings, count as 0 bits.
inline std::optional<uint64_t> dense_bytes(bp_dtype_t dtype, const int64_t* extents, uint32_t rank) {
  int64_t bits = dtype_bits(dtype);
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] == 0) return 0;  // even if another extent is negative
  }
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] < 0 || __builtin_mul_overflow(bits, extents[i], &bits)) return std::nullopt;
  }
  return static_cast<uint64_t>(bits) / 8 + (bits % 8 != 0);
}

// A value of a graph. An omitted operand is a Value that converts to false.
class Value {
 public:
  Value() = default;
  Value(const bp_graph_t* graph, uint32_t index) : graph_(index == BP_NONE ? nullptr : graph), index_(index) {}

  explicit operator bool() const { return graph_ != nullptr; }
  const bp_graph_t* graph() const { return graph_; }
  uint32_t index() const { return index_; }
  const bp_value_t& raw() const { return *bp_graph_value(graph_, index_); }
  const bp_type_t& type() const { return *bp_graph_type(graph_, raw().type); }
  std::string_view name() const { return text(raw().name); }

  bool is_tensor() const { return type().kind == BP_KIND_TENSOR; }
  bp_dtype_t dtype() const { return type().dtype; }
  int32_t rank() const { return type().rank; }  // -1 when unknown
  // The extent of dimension `i`, which is below the rank; -1 if the extent is unknown.
  int64_t extent(uint32_t i) const { return graph_->dims[type().first_dim + i].extent; }
  // The name of dimension `i`; empty if it has none.
  std::string_view symbol(uint32_t i) const {
    const uint32_t symbol = graph_->dims[type().first_dim + i].symbol;
    return symbol == BP_NONE ? std::string_view() : text(bp_graph_symbol(graph_, symbol)->name);
  }
  // Whether the rank and all extents are known.
  bool has_static_shape() const {
    for (int32_t i = 0; i < rank(); ++i) {
      if (extent(static_cast<uint32_t>(i)) < 0) return false;
    }
    return rank() >= 0;
  }
  // All extents: -1 for unknown ones, empty if the rank is unknown.
  std::vector<int64_t> extents() const {
    std::vector<int64_t> result;
    for (int32_t i = 0; i < rank(); ++i) result.push_back(extent(static_cast<uint32_t>(i)));
    return result;
  }
  // The weight that holds the value; NULL if the value is not constant.
  const bp_weight_t* weight() const {
    return raw().weight == BP_NONE ? nullptr : bp_graph_weight(graph_, raw().weight);
  }

 private:
  const bp_graph_t* graph_ = nullptr;
  uint32_t index_ = BP_NONE;
};

// One call of an operator.
class Node {
 public:
  Node(const bp_graph_t* graph, uint32_t index) : graph_(graph), index_(index) {}

  const bp_graph_t* graph() const { return graph_; }
  uint32_t index() const { return index_; }
  const bp_node_t& raw() const { return *bp_graph_node(graph_, index_); }
  std::string_view op_type() const { return text(raw().op_type); }
  std::string_view domain() const { return text(raw().domain); }
  std::string_view name() const { return text(raw().name); }
  uint32_t since_version() const { return raw().since_version; }
  uint64_t id() const { return raw().id; }

  uint32_t input_count() const { return raw().input_count; }
  uint32_t output_count() const { return raw().output_count; }
  Value input(uint32_t slot) const { return Value(graph_, bp_node_input(graph_, &raw(), slot)); }
  Value output(uint32_t slot) const { return Value(graph_, bp_node_output(graph_, &raw(), slot)); }

  // The attribute of this name; NULL if the node has none. ONNX's default values are written out in the graph.
  const bp_attribute_t* attribute(std::string_view name) const {
    for (uint32_t i = 0; i < raw().attribute_count; ++i) {
      const bp_attribute_t* a = bp_graph_attribute(graph_, raw().first_attribute + i);
      if (text(a->name) == name) return a;
    }
    return nullptr;
  }
  // The attribute's value; `otherwise` if the attribute is absent or has another type.
  int64_t int_attribute(std::string_view name, int64_t otherwise) const {
    const bp_attribute_t* a = attribute(name, BP_ATTR_INT);
    return a != nullptr && a->count == 1 ? *static_cast<const int64_t*>(a->data) : otherwise;
  }
  float float_attribute(std::string_view name, float otherwise) const {
    const bp_attribute_t* a = attribute(name, BP_ATTR_FLOAT);
    return a != nullptr && a->count == 1 ? *static_cast<const float*>(a->data) : otherwise;
  }
  std::string_view text_attribute(std::string_view name, std::string_view otherwise) const {
    const bp_attribute_t* a = attribute(name, BP_ATTR_STRING);
    return a != nullptr && a->count == 1 ? text(*static_cast<const bp_text_t*>(a->data)) : otherwise;
  }
  // The attribute's elements; empty if the attribute is absent or has another type.
  std::vector<int64_t> ints_attribute(std::string_view name) const { return elements<int64_t>(name, BP_ATTR_INTS); }
  std::vector<float> floats_attribute(std::string_view name) const { return elements<float>(name, BP_ATTR_FLOATS); }

 private:
  const bp_attribute_t* attribute(std::string_view name, uint32_t type) const {
    const bp_attribute_t* a = attribute(name);
    return a != nullptr && a->type == type ? a : nullptr;
  }
  template <class T>
  std::vector<T> elements(std::string_view name, uint32_t type) const {
    const bp_attribute_t* a = attribute(name, type);
    if (a == nullptr || a->count == 0) return {};
    const T* data = static_cast<const T*>(a->data);
    return std::vector<T>(data, data + a->count);
  }

  const bp_graph_t* graph_;
  uint32_t index_;
};

// A graph: its nodes, values and weights.
class Graph {
 public:
  explicit Graph(const bp_graph_t* graph) : graph_(graph) {}

  const bp_graph_t* raw() const { return graph_; }
  std::string_view name() const { return text(graph_->name); }
  uint32_t node_count() const { return graph_->node_count; }
  Node node(uint32_t i) const { return Node(graph_, i); }
  Value value(uint32_t i) const { return Value(graph_, i); }
  uint32_t input_count() const { return graph_->input_count; }
  uint32_t output_count() const { return graph_->output_count; }
  Value input(uint32_t i) const { return Value(graph_, graph_->inputs[i]); }
  Value output(uint32_t i) const { return Value(graph_, graph_->outputs[i]); }

  std::vector<Node> nodes() const {
    return all<Node>(node_count(), [this](uint32_t i) { return node(i); });
  }
  std::vector<Value> inputs() const {
    return all<Value>(input_count(), [this](uint32_t i) { return input(i); });
  }
  std::vector<Value> outputs() const {
    return all<Value>(output_count(), [this](uint32_t i) { return output(i); });
  }

  // The index of an input or output by name, or BP_NONE.
  uint32_t find_input(std::string_view name) const { return find(graph_->inputs, graph_->input_count, name); }
  uint32_t find_output(std::string_view name) const { return find(graph_->outputs, graph_->output_count, name); }

 private:
  template <class T, class Get>
  static std::vector<T> all(uint32_t count, Get get) {
    std::vector<T> result;
    result.reserve(count);
    for (uint32_t i = 0; i < count; ++i) result.push_back(get(i));
    return result;
  }
  uint32_t find(const uint32_t* values, uint32_t count, std::string_view name) const {
    for (uint32_t i = 0; i < count; ++i) {
      if (value(values[i]).name() == name) return i;
    }
    return BP_NONE;
  }

  const bp_graph_t* graph_;
};

}  // namespace backplane::view
