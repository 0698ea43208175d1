// SPDX-License-Identifier: Apache-2.0
// Reads and writes messages between the loader and a backend's process, which do not trust each other. A reader checks
// every length and count against the remaining bytes. After a failed check it returns only zero or empty values.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"

namespace backplane::isolate {

class Writer {
 public:
  template <class T>
  Writer& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& text(std::string_view text) {
    put<uint64_t>(text.size());
    bytes_.append(text);
    return *this;
  }
  Writer& text(bp_text_t text) { return this->text(text.data ? std::string_view(text.data, text.size) : ""); }
  // Appends a size and that many bytes, which Reader::text() reads. `data` may be null if `size` is 0.
  Writer& blob(const void* data, uint64_t size) {
    return text(size ? std::string_view(static_cast<const char*>(data), size) : std::string_view());
  }
  // Appends the count, then the elements in their memory layout.
  template <class T>
  Writer& array(const T* first, uint64_t count) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    put<uint64_t>(count);
    if (count) bytes_.append(reinterpret_cast<const char*>(first), count * sizeof(T));
    return *this;
  }
  Writer& status(const Status& status);
  // Appends `bytes` without a size.
  Writer& append(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  // `bytes` is borrowed.
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    T value{};
    const std::string_view bytes = piece(sizeof value);
    if (!bytes.empty()) std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return value;
  }
  // The result points into the message.
  std::string_view text();
  // Reads a count of elements, each of which has at least `each` bytes in the message.
  uint64_t count(uint64_t each);
  template <class T>
  std::vector<T> array() {
    std::vector<T> values(count(sizeof(T)));
    const std::string_view bytes = piece(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
    return values;
  }
  Status status();

  // The bytes that have not been read.
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }
  // Whether everything was read and all checks succeeded.
  bool complete() const { return ok_ && rest_.empty(); }
  // Fails the reader because of the caller's own checks.
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  void require(bool holds) {
    if (!holds) fail();
  }

 private:
  std::string_view piece(uint64_t bytes);

  std::string_view rest_;
  bool ok_ = true;
};

// The numeric fields of bp_device_info_t that are sent.
struct DeviceNumbers {
  uint32_t kind, flags;
  uint8_t uuid[16];
  uint64_t memory_bytes, memory_bandwidth, link_bandwidth, launch_ns;
  double flops_fp32, flops_fp16, ops_int8;
  bp_dtype_set_t dtypes;

  static DeviceNumbers of(const bp_device_info_t& info);
  void to(bp_device_info_t& info) const;
};

}  // namespace backplane::isolate
