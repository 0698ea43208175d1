// SPDX-License-Identifier: Apache-2.0
#include "checks/wire.h"

#include <memory>
#include <variant>

namespace backplane::conform {
namespace {

using Body = std::shared_ptr<const onnx::GraphSpec>;

constexpr int kMaxDepth = 64;  // levels of graphs nested in attributes

void write(Writer& to, const onnx::Attribute& attribute) {
  to.text(attribute.name).number<uint8_t>(static_cast<uint8_t>(attribute.value.index()));
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Body>) {
          to.number<uint8_t>(value != nullptr);
          if (value != nullptr) to.graph(*value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          to.text(value);
        } else if constexpr (std::is_arithmetic_v<T>) {
          to.number(value);
        } else {
          to.numbers(value);
        }
      },
      attribute.value);
}

onnx::Attribute read_attribute(Reader& from, int depth) {
  onnx::Attribute attribute{from.text(), int64_t{0}};
  switch (from.number<uint8_t>()) {
    case 0:
      attribute.value = from.number<int64_t>();
      return attribute;
    case 1:
      attribute.value = from.number<float>();
      return attribute;
    case 2:
      attribute.value = from.text();
      return attribute;
    case 3:
      attribute.value = from.numbers<int64_t>();
      return attribute;
    case 4:
      attribute.value = from.numbers<float>();
      return attribute;
    default:
      attribute.value =
          from.number<uint8_t>() != 0 ? std::make_shared<const onnx::GraphSpec>(from.graph(depth + 1)) : Body();
      return attribute;
  }
}

}  // namespace

Writer& Writer::text(std::string_view text) {
  number<uint64_t>(text.size());
  bytes_ += text;
  return *this;
}

Writer& Writer::tensor(const onnx::Tensor& tensor) {
  return number<uint32_t>(static_cast<uint32_t>(tensor.dtype)).numbers(tensor.extents).numbers(tensor.bytes);
}

Writer& Writer::graph(const onnx::GraphSpec& spec) {
  number(spec.opset).numbers(spec.inputs).numbers(spec.outputs);
  number<uint64_t>(spec.values.size());
  for (const onnx::ValueSpec& value : spec.values) {
    number<uint32_t>(static_cast<uint32_t>(value.dtype)).numbers(value.extents).number(value.outer);
    number<uint64_t>(value.symbols.size());
    for (const std::string& symbol : value.symbols) text(symbol);
    number<uint8_t>(value.weight.has_value());
    if (value.weight) tensor(*value.weight);
  }
  number<uint64_t>(spec.nodes.size());
  for (const onnx::NodeSpec& node : spec.nodes) {
    text(node.op_type).text(node.domain).number(node.since_version).numbers(node.inputs).numbers(node.outputs);
    number<uint64_t>(node.attributes.size());
    for (const onnx::Attribute& attribute : node.attributes) write(*this, attribute);
  }
  return *this;
}

std::string_view Reader::take(uint64_t size) {
  if (size > left_.size()) fail();
  const std::string_view piece = left_.substr(0, size);
  left_.remove_prefix(size);
  return piece;
}

uint64_t Reader::count() {
  const uint64_t count = number<uint64_t>();
  if (count > left_.size()) fail();
  return count;
}

std::string Reader::text() {
  return std::string(take(number<uint64_t>()));
}

onnx::Tensor Reader::tensor() {
  onnx::Tensor tensor;
  tensor.dtype = static_cast<bp_dtype_t>(number<uint32_t>());
  tensor.extents = numbers<int64_t>();
  tensor.bytes = numbers<std::byte>();
  return tensor;
}

onnx::GraphSpec Reader::graph(int depth) {
  if (depth > kMaxDepth) fail();
  onnx::GraphSpec spec;
  spec.opset = number<uint32_t>();
  spec.inputs = numbers<uint32_t>();
  spec.outputs = numbers<uint32_t>();
  spec.values.resize(count());
  for (onnx::ValueSpec& value : spec.values) {
    value.dtype = static_cast<bp_dtype_t>(number<uint32_t>());
    value.extents = numbers<int64_t>();
    value.outer = number<uint32_t>();
    value.symbols.resize(count());
    for (std::string& symbol : value.symbols) symbol = text();
    if (number<uint8_t>() != 0) value.weight = tensor();
  }
  spec.nodes.resize(count());
  for (onnx::NodeSpec& node : spec.nodes) {
    node.op_type = text();
    node.domain = text();
    node.since_version = number<uint32_t>();
    node.inputs = numbers<uint32_t>();
    node.outputs = numbers<uint32_t>();
    const uint64_t attributes = count();
    for (uint64_t i = 0; i < attributes; ++i) node.attributes.push_back(read_attribute(*this, depth));
  }
  return spec;
}

}  // namespace backplane::conform
