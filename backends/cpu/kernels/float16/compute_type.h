// SPDX-License-Identifier: Apache-2.0
// Converts operands of any float type to the type that a kernel computes in, and results back.
#pragma once

#include <vector>

#include "kernels/common/float16_array.h"
#include "kernels/common/support.h"
#include "runtime/memory.h"

namespace backplane::cpu {

// Returns the elements of a tensor of any float type as `C`: the tensor's own memory if it has that type, otherwise
// `storage`, to which they are converted.
template <class C>
const C* as_compute(const Tensor& tensor, std::vector<C>& storage) {
  if (tensor.dtype == kDtypeOf<C>) return tensor.as<C>();
  require_memory(tensor.shape.elements(), sizeof(C));
  storage.resize(static_cast<size_t>(tensor.shape.elements()));
  if constexpr (std::is_same_v<C, float>) {
    if (is_16_bit_float(tensor.dtype)) {
      widen(tensor.dtype, tensor.data, storage.data(), tensor.shape.elements());
      return storage.data();
    }
  }
  dispatch<Floats>(tensor.dtype, [&](auto tag) {
    const auto* x = tensor.as<typename decltype(tag)::type>();
    for (size_t i = 0; i < storage.size(); ++i) storage[i] = static_cast<C>(x[i]);
  });
  return storage.data();
}

// Returns memory for results of type `C`: the tensor's own if it has that type, otherwise `storage`, which
// `store_result` then converts into the tensor.
template <class C>
C* result_buffer(const Tensor& tensor, std::vector<C>& storage) {
  if (tensor.dtype == kDtypeOf<C>) return tensor.as<C>();
  require_memory(tensor.shape.elements(), sizeof(C));
  storage.resize(static_cast<size_t>(tensor.shape.elements()));
  return storage.data();
}
template <class C>
void store_result(const Tensor& tensor, const std::vector<C>& storage) {
  if (storage.empty()) return;
  if constexpr (std::is_same_v<C, float>) {
    if (is_16_bit_float(tensor.dtype))
      return narrow(tensor.dtype, storage.data(), tensor.data, tensor.shape.elements());
  }
  dispatch<Floats>(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < storage.size(); ++i)
      tensor.as<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(storage[i]));
  });
}

}  // namespace backplane::cpu
