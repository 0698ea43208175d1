// SPDX-License-Identifier: Apache-2.0
#include "run/edge.h"

#include "base/dtype.h"

namespace backplane {

uint32_t Edge::in(uint32_t memory) const {
  for (uint32_t i = 0; i < replicas.size(); ++i)
    if (replicas[i].memory == memory) return i;
  return BP_NONE;
}

bp_tensor_t Edge::tensor(uint32_t replica) const {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = dtype;
  tensor.rank = static_cast<uint32_t>(extents.size());
  tensor.extents = extents.data();
  if (replica < replicas.size()) tensor.buffer = replicas[replica].buffer;
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
