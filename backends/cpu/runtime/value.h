// SPDX-License-Identifier: Apache-2.0
// An operand of a node with a ValueKernel (value_kernel.h): a tensor with its owner, or a container.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel.h"

namespace backplane::cpu {

struct Elements;

// Cheap to copy: data are shared, and immutable once they are in a value.
struct Value {
  uint32_t kind = 0;  // BP_KIND_*, 0: absent
  Tensor tensor;      // if `kind` is BP_KIND_TENSOR
  // Owns the tensor's data. Null: they are borrowed (a weight, a graph's input, the arena of an executor) and stay
  // valid until the run ends.
  std::shared_ptr<const void> holder;
  std::shared_ptr<Elements> elements;  // of containers, where it is never null

  bool present() const { return kind != 0; }

  static Value of(Tensor tensor, std::shared_ptr<const void> holder = nullptr);
  // Returns a tensor in its own memory, not yet written. Throws sdk::Error if there is not enough memory.
  static Value allocate(bp_dtype_t dtype, const Shape& shape);
  static Value container(uint32_t kind);
};

// A sequence's elements, an optional's element if it has one, or a map's values with their keys.
struct Elements {
  std::vector<Value> values;
  std::vector<std::string> keys;  // of maps: a string, or the 8 bytes of an int64
};

// Returns the value's elements for modification; if other values share them, `value` gets a copy first.
Elements& own_elements(Value& value);
// Returns the value with borrowed tensor data copied, so that a container may keep it.
Value own(Value value);

// Wraps the value in an optional if `kind` is BP_KIND_OPTIONAL; for other kinds, unwraps an optional with an element.
Value as_kind(Value value, uint32_t kind);

// Bytes of a tensor; for strings, their offsets and text.
int64_t bytes_of(const Tensor& tensor);

// The elements of a string tensor as the ABI lays them out: n + 1 offsets, then the bytes.
class Texts {
 public:
  explicit Texts(const Tensor& tensor)
      : offsets_(tensor.as<const int64_t>()),
        count_(tensor.shape.elements()),
        bytes_(reinterpret_cast<const char*>(offsets_ + count_ + 1)) {}
  int64_t count() const { return count_; }
  std::string_view operator[](int64_t i) const {
    return {bytes_ + offsets_[i], static_cast<size_t>(offsets_[i + 1] - offsets_[i])};
  }

 private:
  const int64_t* offsets_;
  int64_t count_;
  const char* bytes_;
};

// Returns a string tensor of these texts, one for each element of the shape.
Value make_texts(const Shape& shape, std::span<const std::string_view> texts);
Value make_texts(const Shape& shape, std::span<const std::string> texts);

// Checks the offsets of a string tensor of `capacity` bytes; returns an error message, empty if they are valid.
std::string check_texts(const Tensor& tensor, uint64_t capacity);

// Copies `count` elements of a type from position `from` of one tensor to position `to` of another. Not for strings.
void copy_elements(bp_dtype_t dtype, const void* source, int64_t from, void* target, int64_t to, int64_t count);

// Joins tensors along an existing axis (concatenate) or a new one (stack). Needs at least one part. Throws sdk::Error
// if the parts differ in type or in other extents.
Value concatenate(std::span<const Value> parts, int axis);
Value stack(std::span<const Value> parts, int axis);
// Returns positions [begin, end) along an axis.
Value slice(const Value& value, int axis, int64_t begin, int64_t end);
// Returns the same elements with other extents.
Value reshaped(Value value, const Shape& shape);

}  // namespace backplane::cpu
