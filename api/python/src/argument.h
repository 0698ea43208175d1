// SPDX-License-Identifier: Apache-2.0
// A tensor that a Python object holds, as the ABI sees it.
#pragma once

#include <array>
#include <memory>

#include "array.h"

namespace backplane::python {

// How a call uses the memory of an argument, and how objects that are no arrays are converted.
struct Use {
  std::string_view name;                  // for errors: "input 'x'"
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;  // of lists and numbers; BP_DTYPE_UNDEFINED: NumPy's choice
  bool writes = false;                    // the memory must be writable
  bool may_copy = false;                  // memory that cannot be used as it is may be copied
};

// Holds the object, and its buffer or a copy, for as long as it lives. Created, moved and destroyed with the
// interpreter lock held.
class Argument {
 public:
  static Argument of(const Environment& env, nb::handle value, const Use& use);

  // Points into this.
  bp_tensor_t abi() const;
  const nb::object& object() const { return object_; }

 private:
  struct Release {
    void operator()(Py_buffer* buffer) const {
      PyBuffer_Release(buffer);
      delete buffer;
    }
  };
  bool take_buffer(nb::handle value, const Use& use);
  void take_view(nb::handle array, bp_dtype_t dtype, const Use& use);
  void take_strings(nb::handle value);
  void take_array(const Array& array, const Use& use);
  void set_extents(const Py_ssize_t* extents, int rank);

  bp_dtype_t dtype_ = BP_DTYPE_UNDEFINED;
  uint32_t rank_ = 0;
  std::array<int64_t, BP_MAX_RANK> extents_;
  bp_buffer_t buffer_{};
  nb::object object_;  // as given
  nb::object owner_;   // where the memory is another object's
  std::unique_ptr<Py_buffer, Release> held_;
  HostMemory copy_;
};

}  // namespace backplane::python
