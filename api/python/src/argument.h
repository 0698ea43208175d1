// SPDX-License-Identifier: Apache-2.0
// A Python object's tensor in the ABI's form.
#pragma once

#include <array>
#include <memory>

#include "array.h"

namespace backplane::python {

// How a call uses an argument's memory, and how it converts objects that are not arrays.
struct Use {
  std::string_view name;                  // for error messages: "input 'x'"
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;  // for lists and numbers; BP_DTYPE_UNDEFINED: NumPy chooses
  bool writes = false;                    // the memory must be writable
  bool may_copy = false;                  // memory that cannot be used in place is copied; otherwise it is refused
};

// The tensor that a Python object contains. Keeps the object alive, and its buffer or a copy of the elements. Must be
// created, moved and destroyed with the interpreter lock held.
class Argument {
 public:
  static Argument of(const Environment& env, nb::handle value, const Use& use);

  // The result points into this object.
  bp_tensor_t abi() const;
  const nb::object& object() const { return object_; }
  uint64_t bytes() const { return buffer_.bytes; }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(object_.ptr());
    Py_VISIT(owner_.ptr());
    if (held_) Py_VISIT(held_->obj);
    return 0;
  }

 private:
  struct Release {
    void operator()(Py_buffer* buffer) const {
      PyBuffer_Release(buffer);
      delete buffer;
    }
  };
  bool take_buffer(nb::handle value, const Use& use);
  void take_view(nb::handle array, bp_dtype_t dtype, const Use& use);
  void take_strings(nb::handle value, const Use& use);
  void take_array(const Array& array, const Use& use);
  void set_extents(const int64_t* extents, size_t rank, const Use& use);

  bp_dtype_t dtype_ = BP_DTYPE_UNDEFINED;
  uint32_t rank_ = 0;
  std::array<int64_t, BP_MAX_RANK> extents_;
  bp_buffer_t buffer_{};
  nb::object object_;  // the object as given
  nb::object owner_;   // set if the memory belongs to another object
  std::unique_ptr<Py_buffer, Release> held_;
  HostMemory copy_;
};

}  // namespace backplane::python
