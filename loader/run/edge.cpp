// SPDX-License-Identifier: Apache-2.0
#include "run/edge.h"

#include <utility>

#include "ops/dtype.h"

namespace backplane {

Block& Block::operator=(Block&& other) noexcept {
  std::swap(services_, other.services_);
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

void Block::reset() {
  if (data_) services_->release(data_, capacity_, 64);
  data_ = nullptr;
  capacity_ = 0;
}

bool Block::reserve(Services& services, uint64_t bytes) {
  if (bytes <= capacity_) return true;
  reset();
  services_ = &services;
  data_ = services.allocate(bytes, 64);
  if (!data_) return false;
  capacity_ = bytes;
  return true;
}

bp_tensor_t Edge::tensor() const {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = dtype;
  tensor.rank = static_cast<uint32_t>(extents.size());
  tensor.extents = extents.data();
  tensor.buffer.address = data;
  tensor.buffer.bytes = capacity;
  return tensor;
}

uint64_t dense_bytes(bp_dtype_t dtype, uint32_t rank, const int64_t* extents) {
  if (dtype == BP_DTYPE_STRING) return 0;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i)
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(extents[i]), &elements)) return UINT64_MAX;
  uint64_t bits = 0;
  if (__builtin_mul_overflow(elements, static_cast<uint64_t>(ops::dtype_bits(dtype)), &bits)) return UINT64_MAX;
  return bits / 8 + (bits % 8 != 0);
}

}  // namespace backplane
