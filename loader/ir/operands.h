// SPDX-License-Identifier: Apache-2.0
// The inputs or the outputs of a node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

namespace backplane::model {

using ValueId = uint32_t;  // BP_NONE: omitted

// A vector of values with inline space for four. Few nodes have more inputs or outputs, so most walks over a graph
// touch no memory other than the nodes.
class Operands {
 public:
  using value_type = ValueId;
  using iterator = ValueId*;
  using const_iterator = const ValueId*;

  Operands() = default;
  Operands(std::initializer_list<ValueId> values) { assign({values.begin(), values.size()}); }
  Operands(const std::vector<ValueId>& values) { assign(values); }
  Operands(const Operands& other) { assign(other); }
  Operands(Operands&& other) noexcept { take(other); }
  Operands& operator=(const Operands& other) {
    if (this != &other) assign(other);
    return *this;
  }
  Operands& operator=(Operands&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~Operands() { drop(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  ValueId* data() { return capacity_ == kHere ? here_ : far_; }
  const ValueId* data() const { return capacity_ == kHere ? here_ : far_; }
  ValueId* begin() { return data(); }
  ValueId* end() { return data() + size_; }
  const ValueId* begin() const { return data(); }
  const ValueId* end() const { return data() + size_; }
  ValueId& operator[](size_t i) { return data()[i]; }
  ValueId operator[](size_t i) const { return data()[i]; }
  ValueId front() const { return data()[0]; }
  ValueId back() const { return data()[size_ - 1]; }

  void assign(std::span<const ValueId> values) {
    size_ = 0;
    reserve(values.size());
    std::ranges::copy(values, data());
    size_ = static_cast<uint32_t>(values.size());
  }
  void resize(size_t size, ValueId added = 0) {
    reserve(size);
    if (size > size_) std::fill(end(), data() + size, added);
    size_ = static_cast<uint32_t>(size);
  }
  void push_back(ValueId value) {
    if (size_ == capacity_) reserve(2 * size_t{capacity_});
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void erase(ValueId* place) {
    std::copy(place + 1, end(), place);
    --size_;
  }

  friend bool operator==(const Operands& a, const Operands& b) { return std::ranges::equal(a, b); }

 private:
  static constexpr uint32_t kHere = 4;

  void reserve(size_t count) {
    if (count <= capacity_) return;
    auto* far = new ValueId[count];
    std::copy(begin(), end(), far);
    drop();
    capacity_ = static_cast<uint32_t>(count);
    far_ = far;
  }
  void drop() {
    if (capacity_ != kHere) delete[] far_;
  }
  // Moves the values of `other` to this object, which must own no memory, and leaves `other` empty.
  void take(Operands& other) {
    size_ = other.size_;
    capacity_ = other.capacity_;
    std::memcpy(here_, other.here_, sizeof here_);  // copies the inline values or the heap pointer
    other.size_ = 0;
    other.capacity_ = kHere;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kHere;  // if larger than kHere, the values are on the heap
  union {
    ValueId here_[kHere] = {};
    ValueId* far_;
  };
};

}  // namespace backplane::model
