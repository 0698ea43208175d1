// SPDX-License-Identifier: Apache-2.0
// The serialized values that the judge exchanges with the process that loads the plugin. Both processes run the same
// program, so numbers are in the machine's own format.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "host/graph.h"

namespace backplane::conform {

class Writer {
 public:
  template <typename T>
  Writer& number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <typename T>
  Writer& numbers(const std::vector<T>& values) {
    number<uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return *this;
  }
  Writer& text(std::string_view text);
  Writer& tensor(const onnx::Tensor& tensor);
  Writer& graph(const onnx::GraphSpec& spec);

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads values. Every read throws std::runtime_error if fewer bytes remain than it needs.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  template <typename T>
  std::vector<T> numbers() {
    const uint64_t count = number<uint64_t>();
    if (count > left_.size() / sizeof(T)) fail();
    std::vector<T> values(count);
    const std::string_view bytes = take(count * sizeof(T));
    if (count != 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::string text();
  onnx::Tensor tensor();
  onnx::GraphSpec graph(int depth = 0);
  // Reads the number of elements that follow. Throws if it exceeds the remaining bytes.
  uint64_t count();
  bool at_end() const { return left_.empty(); }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error("a message between the harness's processes is damaged"); }
  std::string_view take(uint64_t size);

  std::string_view left_;
};

}  // namespace backplane::conform
