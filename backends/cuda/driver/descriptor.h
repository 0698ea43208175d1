// SPDX-License-Identifier: Apache-2.0
// A descriptor of cuDNN's graph API: an object whose attributes are set before it is finalized and then used.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "driver/cudnn.h"

namespace backplane::cuda::dnn {

// All functions throw sdk::Error on failure.
class Descriptor {
 public:
  // `what` names the object in errors; it must be a literal.
  Descriptor(DescriptorType type, std::string_view what) : what_(what) {
    check(functions().BackendCreateDescriptor(type, &raw_), what_);
  }
  Descriptor(Descriptor&& other) noexcept : what_(other.what_), raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (raw_ != nullptr) functions().BackendDestroyDescriptor(raw_);
  }
  RawDescriptor get() const { return raw_; }

  // T must be the C++ type that belongs to `type`; for enumerations, the enumeration itself.
  template <class T>
  void set(Attribute attribute, AttributeType type, const T& value) {
    set_all(attribute, type, &value, 1);
  }
  template <class T>
  void set(Attribute attribute, AttributeType type, const std::vector<T>& values) {
    set_all(attribute, type, values.data(), values.size());
  }
  void set(Attribute attribute, const Descriptor& value) { set(attribute, kTypeDescriptor, value.raw_); }
  void set(Attribute attribute, const std::string& text) { set_all(attribute, kTypeChar, text.data(), text.size()); }
  void finalize() { check(functions().BackendFinalize(raw_), what_); }

  // At most `most` elements of an attribute of a finalized descriptor.
  template <class T>
  std::vector<T> values(Attribute attribute, AttributeType type, size_t most) const {
    std::vector<T> all(most);
    all.resize(fill(attribute, type, all));
    return all;
  }
  // Reads at most all.size() elements into `all` and returns how many. Elements that are descriptors must have been
  // created by the caller.
  template <class T>
  size_t fill(Attribute attribute, AttributeType type, std::vector<T>& all) const {
    int64_t count = 0;
    check(functions().BackendGetAttribute(raw_, attribute, type, static_cast<int64_t>(all.size()), &count, all.data()),
          what_);
    return std::min(all.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
  }

 private:
  void set_all(Attribute attribute, AttributeType type, const void* values, size_t count) {
    check(functions().BackendSetAttribute(raw_, attribute, type, static_cast<int64_t>(count), values), what_);
  }

  std::string_view what_;
  RawDescriptor raw_ = nullptr;
};

}  // namespace backplane::cuda::dnn
