// SPDX-License-Identifier: Apache-2.0
// A dense tensor in host memory that owns its bytes. Copies of the object share the bytes; clone() copies them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backplane/graph.hpp"
#include "backplane/memory.h"

namespace backplane {
inline namespace client {

// The bp_dtype_t of a C++ element type. C++17 has no floating-point types of 16 bits or less: for these, use the
// constructor that takes a bp_dtype_t and a pointer to the bits.
template <class T>
constexpr bp_dtype_t dtype_of();
template <>
constexpr bp_dtype_t dtype_of<float>() {
  return BP_DTYPE_FLOAT;
}
template <>
constexpr bp_dtype_t dtype_of<double>() {
  return BP_DTYPE_DOUBLE;
}
template <>
constexpr bp_dtype_t dtype_of<bool>() {
  return BP_DTYPE_BOOL;
}
template <>
constexpr bp_dtype_t dtype_of<int8_t>() {
  return BP_DTYPE_INT8;
}
template <>
constexpr bp_dtype_t dtype_of<int16_t>() {
  return BP_DTYPE_INT16;
}
template <>
constexpr bp_dtype_t dtype_of<int32_t>() {
  return BP_DTYPE_INT32;
}
template <>
constexpr bp_dtype_t dtype_of<int64_t>() {
  return BP_DTYPE_INT64;
}
template <>
constexpr bp_dtype_t dtype_of<uint8_t>() {
  return BP_DTYPE_UINT8;
}
template <>
constexpr bp_dtype_t dtype_of<uint16_t>() {
  return BP_DTYPE_UINT16;
}
template <>
constexpr bp_dtype_t dtype_of<uint32_t>() {
  return BP_DTYPE_UINT32;
}
template <>
constexpr bp_dtype_t dtype_of<uint64_t>() {
  return BP_DTYPE_UINT64;
}

class Tensor {
 public:
  static constexpr uint64_t kAlignment = 64;

  Tensor() = default;
  // A tensor of zeros. Throws std::invalid_argument if the shape is impossible or the type has no fixed width; for
  // strings, use of_strings.
  Tensor(bp_dtype_t dtype, std::vector<int64_t> extents) : dtype_(dtype), extents_(std::move(extents)) {
    if (view::dtype_bits(dtype) == 0) {
      throw std::invalid_argument("a tensor of " + std::string(view::dtype_name(dtype)) +
                                  ": its type must have a fixed width (strings: of_strings)");
    }
    allocate(checked_bytes(dtype));
  }
  // Copies the elements, which are dense at `data`. Throws like the constructor above.
  Tensor(bp_dtype_t dtype, std::vector<int64_t> extents, const void* data) : Tensor(dtype, std::move(extents)) {
    if (bytes_ != 0) std::memcpy(data_.get(), data, bytes_);
  }
  // Example: Tensor::of<float>({2, 2}, {1, 2, 3, 4}). Throws std::invalid_argument if the number of values does not fit
  // the extents.
  template <class T>
  static Tensor of(std::vector<int64_t> extents, const std::vector<T>& values) {
    Tensor tensor(dtype_of<T>(), std::move(extents));
    if (values.size() != tensor.count()) {
      throw std::invalid_argument(std::to_string(values.size()) + " values do not fit the extents " + tensor.shape());
    }
    T* out = static_cast<T*>(tensor.data());
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return tensor;
  }
  // Throws std::invalid_argument if the shape is impossible or the number of strings does not fit the extents.
  static Tensor of_strings(std::vector<int64_t> extents, const std::vector<std::string>& values) {
    Tensor tensor;
    tensor.dtype_ = BP_DTYPE_STRING;
    tensor.extents_ = std::move(extents);
    tensor.checked_bytes(BP_DTYPE_INT64);  // an offset for each string
    if (values.size() != tensor.count()) {
      throw std::invalid_argument(std::to_string(values.size()) + " strings do not fit the extents " + tensor.shape());
    }
    std::vector<int64_t> offsets{0};
    std::string text;
    for (const std::string& value : values) {
      text += value;
      offsets.push_back(static_cast<int64_t>(text.size()));
    }
    const uint64_t head = offsets.size() * sizeof(int64_t);
    tensor.allocate(head + text.size());
    std::memcpy(tensor.data_.get(), offsets.data(), head);
    std::memcpy(tensor.data_.get() + head, text.data(), text.size());
    return tensor;
  }
  // Copies a dense tensor in host memory. Throws std::invalid_argument if the layout is not dense, if an extent is
  // negative, or if elements or strings exceed the buffer.
  static Tensor copy(const bp_tensor_t& from) {
    Tensor tensor;
    tensor.dtype_ = from.dtype;
    tensor.extents_.assign(from.extents, from.extents + from.rank);
    const bool strings = from.dtype == BP_DTYPE_STRING;
    const auto dense = view::dense_bytes(strings ? BP_DTYPE_INT64 : from.dtype, from.extents, from.rank);
    if (from.layout != BP_LAYOUT_DENSE) {
      throw std::invalid_argument("a tensor of layout " + std::to_string(from.layout) +
                                  " cannot be copied: it must be dense (BP_LAYOUT_DENSE)");
    }
    if (!dense || tensor.has_negative_extent()) {
      throw std::invalid_argument("a tensor of extents " + tensor.shape() +
                                  " cannot be copied: they must be 0 or more, and its elements must be addressable");
    }
    const char* data = static_cast<const char*>(from.buffer.address) + from.buffer.offset;
    uint64_t bytes = *dense;
    if (strings) {
      const uint64_t head = (tensor.count() + 1) * sizeof(int64_t);
      int64_t end = 0;
      if (head <= from.buffer.bytes) std::memcpy(&end, data + head - sizeof end, sizeof end);
      if (head > from.buffer.bytes || end < 0 || static_cast<uint64_t>(end) > from.buffer.bytes - head) {
        throw std::invalid_argument("the strings of a tensor of extents " + tensor.shape() + " do not fit in its " +
                                    std::to_string(from.buffer.bytes) + " bytes");
      }
      bytes = head + static_cast<uint64_t>(end);
    } else if (bytes > from.buffer.bytes) {
      throw std::invalid_argument("a tensor of " + std::string(view::dtype_name(from.dtype)) + " and extents " +
                                  tensor.shape() + " needs " + std::to_string(bytes) + " bytes, but its buffer has " +
                                  std::to_string(from.buffer.bytes));
    }
    tensor.allocate(bytes);
    if (bytes != 0) std::memcpy(tensor.data_.get(), data, bytes);
    return tensor;
  }
  Tensor clone() const { return *this ? copy(abi()) : Tensor(); }

  explicit operator bool() const { return data_ != nullptr; }
  bp_dtype_t dtype() const { return dtype_; }
  const std::vector<int64_t>& extents() const { return extents_; }
  uint64_t count() const {
    uint64_t n = 1;
    for (const int64_t extent : extents_) n *= static_cast<uint64_t>(extent);
    return n;
  }
  uint64_t bytes() const { return bytes_; }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  // Throws std::invalid_argument if the tensor has another data type.
  template <class T>
  T* data() {
    expect(dtype_of<T>());
    return reinterpret_cast<T*>(data_.get());
  }
  template <class T>
  const T* data() const {
    return const_cast<Tensor*>(this)->data<T>();
  }
  template <class T>
  std::vector<T> values() const {
    const T* p = data<T>();
    return std::vector<T>(p, p + count());
  }
  std::vector<std::string> strings() const {
    expect(BP_DTYPE_STRING);
    const auto* offsets = reinterpret_cast<const int64_t*>(data_.get());
    const char* text = data_.get() + (count() + 1) * sizeof(int64_t);
    const auto end = static_cast<int64_t>(bytes_ - (count() + 1) * sizeof(int64_t));
    std::vector<std::string> result;
    for (uint64_t i = 0; i < count(); ++i) {
      if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || offsets[i + 1] > end) {
        throw std::invalid_argument("string " + std::to_string(i) + " has offsets " + std::to_string(offsets[i]) +
                                    " and " + std::to_string(offsets[i + 1]) + " in " + std::to_string(end) + " bytes");
      }
      result.emplace_back(text + offsets[i], text + offsets[i + 1]);
    }
    return result;
  }
  // Formats the extents as "[2, 3]".
  std::string shape() const {
    std::string result = "[";
    for (size_t i = 0; i < extents_.size(); ++i) result += (i == 0 ? "" : ", ") + std::to_string(extents_[i]);
    return result + "]";
  }

  // A bp_tensor_t that borrows this tensor's extents and memory.
  bp_tensor_t abi() const {
    bp_tensor_t t{};
    t.size = sizeof t;
    t.dtype = dtype_;
    t.rank = static_cast<uint32_t>(extents_.size());
    t.layout = BP_LAYOUT_DENSE;
    t.extents = extents_.data();
    t.buffer.address = data_.get();
    t.buffer.bytes = bytes_;
    return t;
  }

 private:
  // Returns the size of dense elements of `dtype`. Throws std::invalid_argument if the shape is impossible.
  uint64_t checked_bytes(bp_dtype_t dtype) const {
    const auto bytes = view::dense_bytes(dtype, extents_.data(), static_cast<uint32_t>(extents_.size()));
    if (!bytes || extents_.size() > BP_MAX_RANK || has_negative_extent()) {
      throw std::invalid_argument("a tensor of " + std::string(view::dtype_name(dtype_)) + " and extents " + shape() +
                                  ": it must fit in memory, with at most 32 extents of 0 or more");
    }
    return *bytes;
  }
  bool has_negative_extent() const {  // which dense_bytes accepts if another extent is 0
    return std::any_of(extents_.begin(), extents_.end(), [](int64_t extent) { return extent < 0; });
  }
  void allocate(uint64_t bytes) {
    const uint64_t rounded = bytes / kAlignment * kAlignment + kAlignment;
    char* memory = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
    if (memory == nullptr) throw std::bad_alloc();
    data_ = std::shared_ptr<char>(memory, std::free);
    std::memset(memory, 0, bytes);
    bytes_ = bytes;
  }
  void expect(bp_dtype_t dtype) const {
    if (dtype_ == dtype) return;
    throw std::invalid_argument("a tensor of " + std::string(view::dtype_name(dtype_)) + " was read as " +
                                std::string(view::dtype_name(dtype)) + "; read it as its own type");
  }

  bp_dtype_t dtype_ = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> extents_;
  std::shared_ptr<char> data_;
  uint64_t bytes_ = 0;
};

}  // namespace client
}  // namespace backplane
