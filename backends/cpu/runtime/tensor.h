// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backplane/plugin.h"
#include "runtime/format.h"
#include "runtime/shape.h"

namespace backplane::cpu {

// A tensor in host memory as kernels see it. Dense and row-major, unless the kernel requested another format. `data` is
// null while planning if the value is not known. An absent optional input or output has dtype BP_DTYPE_UNDEFINED and
// null `data`.
struct Tensor {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  Shape shape;
  void* data = nullptr;
  Format format = Format::kDense;
  bool transient = false;  // the data are known to one schedule only: the address may hold other data later

  int64_t stored() const { return stored_elements(format, shape); }
  bool present() const { return dtype != BP_DTYPE_UNDEFINED; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Returns the size in bytes of `elements` elements of a type; sub-byte types are packed. Returns 0 for strings and
// unknown types. Throws sdk::Error if `elements` is negative or above kMaxExtents (runtime/shape.h).
int64_t bytes_of(bp_dtype_t dtype, int64_t elements);

// Sets the padding channels of a blocked tensor to zero.
void clear_padding(const Tensor& tensor);

}  // namespace backplane::cpu
