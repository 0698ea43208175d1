// SPDX-License-Identifier: Apache-2.0
// Reads the indices of Gather and Scatter operators: INT32 or INT64, where negative indices count from the end.
//
// An index may change between its check and its use: a backend in a process of its own, which wrote it, may share the
// memory. The results are then arbitrary, but nothing outside the data is accessed, because each use is checked too.
#pragma once

#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {

// Reads an index, which may be negative, once. Returns its position in [0, extent), or 0 if it is out of range.
template <class T>
[[gnu::always_inline]] inline int64_t position_of(const T* index, int64_t extent) {
  int64_t at = __atomic_load_n(index, __ATOMIC_RELAXED);
  at += at < 0 ? extent : 0;
  return static_cast<uint64_t>(at) < static_cast<uint64_t>(extent) ? at : 0;
}

class Indices {
 public:
  explicit Indices(const Tensor& tensor) : data_(tensor.data), narrow_(tensor.dtype == BP_DTYPE_INT32) {}

  int64_t raw(int64_t i) const {
    return narrow_ ? __atomic_load_n(static_cast<const int32_t*>(data_) + i, __ATOMIC_RELAXED)
                   : __atomic_load_n(static_cast<const int64_t*>(data_) + i, __ATOMIC_RELAXED);
  }
  bool in_range(int64_t i, int64_t extent) const {
    const int64_t index = raw(i);
    return index >= -extent && index < extent;
  }
  // Returns the position in [0, extent). 0 if `in_range` is false.
  int64_t operator()(int64_t i, int64_t extent) const {
    return narrow_ ? position_of(static_cast<const int32_t*>(data_) + i, extent)
                   : position_of(static_cast<const int64_t*>(data_) + i, extent);
  }
  std::string out_of_range(int64_t i, int64_t extent) const {
    return "index " + std::to_string(raw(i)) + " is out of range for extent " + std::to_string(extent);
  }

 private:
  const void* data_;
  bool narrow_;
};

// Indices whose last dimension holds tuples. A tuple has an index for each dimension of `data` from `first` on, or only
// for the first of these, and addresses an element or a slice.
class TupleIndices {
 public:
  TupleIndices(const Tensor& tensor, const Shape& data, int first)
      : indices_(tensor),
        data_(data),
        strides_(strides_of(data)),
        first_(first),
        size_(tensor.shape[tensor.shape.rank() - 1]) {}

  // Returns the offset in `data` that tuple `i` addresses, or -1 if the tuple is out of range.
  int64_t offset(int64_t i) const {
    int64_t at = 0;
    for (int k = 0; k < size_; ++k) {
      const int64_t extent = data_[first_ + k];
      const int64_t index = indices_.raw(i * size_ + k);
      if (index < -extent || index >= extent) return -1;
      at += (index < 0 ? index + extent : index) * strides_[first_ + k];
    }
    return at;
  }
  std::string out_of_range(int64_t i) const {
    return "index tuple " + std::to_string(i) + " is out of range for data of shape " + to_string(data_);
  }

 private:
  Indices indices_;
  Shape data_, strides_;
  int first_;
  int64_t size_;
};

// Whether `part` has the rank of `whole`, and is at most as large in every dimension except `axis`.
inline bool covers(const Shape& whole, const Shape& part, int axis) {
  if (whole.rank() != part.rank()) return false;
  for (int i = 0; i < whole.rank(); ++i)
    if (i != axis && part[i] > whole[i]) return false;
  return true;
}

// For each element i of a tensor of shape `part`, calls f(i, base, stride). `base` is the offset in `whole` of the
// element's position with the index along `axis` set to 0; `stride` is the stride of `axis` in `whole`.
template <class F>
void for_elements(const Shape& whole, const Shape& part, int axis, const F& f) {
  const Shape strides = strides_of(whole);
  Shape index = part;
  for (int d = 0; d < part.rank(); ++d) index[d] = 0;
  const int64_t n = part.elements();
  Pace pace;
  for (int64_t i = 0, base = 0; i < n; ++i) {
    pace.spend(1);
    f(i, base, strides[axis]);
    for (int d = part.rank() - 1; d >= 0; --d) {
      const int64_t stride = d == axis ? 0 : strides[d];
      base += stride;
      if (++index[d] < part[d]) break;
      base -= stride * part[d];
      index[d] = 0;
    }
  }
}

}  // namespace backplane::cpu
