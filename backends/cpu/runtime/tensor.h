// SPDX-License-Identifier: Apache-2.0
// A tensor as kernels see it.
#pragma once

#include "backplane/plugin.h"
#include "runtime/format.h"
#include "runtime/shape.h"

namespace backplane::cpu {

// Host memory, dense and row-major unless the kernel asked for another format. `data` is null if the value is not known
// (while planning), and for absent optional inputs and outputs, whose dtype is BP_DTYPE_UNDEFINED.
struct Tensor {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  Shape shape;
  void* data = nullptr;
  Format format = Format::kDense;
  bool transient = false;  // known to one plan only: the address may hold other data later

  int64_t stored() const { return stored_elements(format, shape); }
  bool present() const { return dtype != BP_DTYPE_UNDEFINED; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Bytes of `elements` elements of a type; sub-byte types are packed. 0 for strings and unknown types. Throws sdk::Error
// if `elements` is negative or above kMaxExtents.
int64_t bytes_of(bp_dtype_t dtype, int64_t elements);

// Zeroes the padding channels of a blocked tensor.
void clear_padding(const Tensor& tensor);

}  // namespace backplane::cpu
