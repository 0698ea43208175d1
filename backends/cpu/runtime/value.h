// SPDX-License-Identifier: Apache-2.0
// An input or output of a ValueKernel (value_kernel.h): a tensor with its owner, or a container.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/element_list.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct Elements;

// Cheap to copy: copies share their data. Tensor data do not change once they belong to a value; the elements of a
// container are changed only through `own_elements`.
struct Value {
  uint32_t kind = 0;  // BP_KIND_*; 0: the value is absent
  Tensor tensor;      // if `kind` is BP_KIND_TENSOR
  // Owns the tensor's data. Null: the data are borrowed (for example from a weight, a graph input or an executor's
  // arena) and stay valid until the run ends.
  std::shared_ptr<const void> holder;
  std::shared_ptr<Elements> elements;  // of a container; null for a tensor

  bool present() const { return kind != 0; }

  static Value of(Tensor tensor, std::shared_ptr<const void> holder = nullptr);
  // Returns a tensor with its own uninitialized memory. Throws sdk::Error if there is not enough memory.
  static Value allocate(bp_dtype_t dtype, const Shape& shape);
  static Value container(uint32_t kind);
};

// The elements of a sequence, the element of an optional if it has one, or the values and keys of a map.
struct Elements {
  ElementList<Value> values;
  std::vector<std::string> keys;  // of a map: strings, or the 8 bytes of int64 numbers
};

// Returns the value's elements for modification. If other values share them, copies them for `value` first.
Elements& own_elements(Value& value);
// Returns the value, with a copy of the tensor data if they were borrowed, so that a container can keep it.
Value own(Value value);

// If `kind` is BP_KIND_OPTIONAL, wraps a value of another kind in an optional. For other kinds, unwraps an optional
// that has an element. Returns any other value, and an absent one, unchanged.
Value as_kind(Value value, uint32_t kind);
// As `as_kind`. In addition, an array of one element becomes a scalar where a scalar is declared: exporters declare
// loop-carried values of shape [1] as scalars.
Value as_declared(Value value, const bp_type_t& type);

// Returns the size of a tensor in bytes; for strings, the size of the offsets and the text.
int64_t bytes_of(const Tensor& tensor);

// Views the elements of a string tensor in the ABI's layout: n + 1 offsets, then the text.
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

// Return a string tensor with these texts, one for each element of the shape.
Value make_texts(const Shape& shape, std::span<const std::string_view> texts);
Value make_texts(const Shape& shape, std::span<const std::string> texts);

// Checks the offsets of a string tensor whose buffer has `capacity` bytes. Returns an error message, or "" if they are
// valid.
std::string check_texts(const Tensor& tensor, uint64_t capacity);

// Copies `count` elements of a type, from index `from` of one tensor to index `to` of another. Not for strings.
// Elements of fewer than 8 bits must be written in ascending order: the first one written to a byte sets the rest of it
// to 0.
void copy_elements(bp_dtype_t dtype, const void* source, int64_t from, void* target, int64_t to, int64_t count);

// Join tensors along an existing axis (concatenate) or a new one (stack). `parts` must not be empty, `axis` not
// negative. They throw sdk::Error if the parts differ in type or in the extents of other axes, or if the result would
// have too many elements or dimensions.
Value concatenate(std::span<const Value> parts, int axis);
Value stack(std::span<const Value> parts, int axis);
// Returns the part of a tensor at [begin, end) along an axis. The result may share the data of `value`.
Value slice(const Value& value, int axis, int64_t begin, int64_t end);
// Returns the same elements with another shape.
Value reshaped(Value value, const Shape& shape);

// Describes a value's kind, and a tensor's data type and shape, for error texts.
std::string describe_value(const Value& value);

}  // namespace backplane::cpu
