// SPDX-License-Identifier: Apache-2.0
// Writes ONNX's file format: protobuf messages, whose fields are identified by number.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace onnxifi_backend::wire {

class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    varint(uint64_t{field} << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(uint32_t field, float value) {
    varint(uint64_t{field} << 3 | 5);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }

  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

// The numbers of the fields that the backend writes.
namespace field {
namespace model {
enum : uint32_t { kIrVersion = 1, kProducerName = 2, kGraph = 7, kOpsetImport = 8 };
}
namespace opset {
enum : uint32_t { kDomain = 1, kVersion = 2 };
}
namespace graph {
enum : uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12, kValueInfo = 13 };
}
namespace node {
enum : uint32_t { kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7 };
}
namespace attribute {
enum : uint32_t {
  kName = 1,
  kF = 2,
  kI = 3,
  kS = 4,
  kT = 5,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kTensors = 10,
  kType = 20
};
}
namespace tensor {
enum : uint32_t { kDims = 1, kDataType = 2, kName = 8, kRawData = 9 };
}
namespace value {
enum : uint32_t { kName = 1, kType = 2 };
}
namespace type {
enum : uint32_t { kTensor = 1, kElemType = 1, kShape = 2, kDim = 1, kDimValue = 1 };
}
}  // namespace field

}  // namespace onnxifi_backend::wire
