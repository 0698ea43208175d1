// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor.h"

#include <algorithm>
#include <string>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

int64_t bytes_of(bp_dtype_t dtype, int64_t elements) {
  if (elements < 0 || elements > kMaxExtents)
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, "a tensor cannot have " + std::to_string(elements) + " elements");
  switch (dtype) {
    case BP_DTYPE_UINT8:
    case BP_DTYPE_INT8:
    case BP_DTYPE_BOOL:
    case BP_DTYPE_FLOAT8E4M3FN:
    case BP_DTYPE_FLOAT8E4M3FNUZ:
    case BP_DTYPE_FLOAT8E5M2:
    case BP_DTYPE_FLOAT8E5M2FNUZ:
    case BP_DTYPE_FLOAT8E8M0:
      return elements;
    case BP_DTYPE_UINT16:
    case BP_DTYPE_INT16:
    case BP_DTYPE_FLOAT16:
    case BP_DTYPE_BFLOAT16:
      return elements * 2;
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_INT32:
    case BP_DTYPE_UINT32:
      return elements * 4;
    case BP_DTYPE_INT64:
    case BP_DTYPE_UINT64:
    case BP_DTYPE_DOUBLE:
    case BP_DTYPE_COMPLEX64:
      return elements * 8;
    case BP_DTYPE_COMPLEX128:
      return elements * 16;
    case BP_DTYPE_UINT4:
    case BP_DTYPE_INT4:
    case BP_DTYPE_FLOAT4E2M1:
      return (elements + 1) / 2;
    case BP_DTYPE_UINT2:
    case BP_DTYPE_INT2:
      return (elements + 3) / 4;
    default:
      return 0;
  }
}

void clear_padding(const Tensor& tensor) {
  const int64_t block = channel_block();
  const int64_t rest = tensor.shape[1] % block;
  if (rest == 0) return;
  const int64_t places = tensor.shape.elements(2, tensor.shape.rank());
  const int64_t blocks = tensor.shape[1] / block + 1;
  for (int64_t image = 1; image <= tensor.shape[0]; ++image) {
    float* last = tensor.as<float>() + (image * blocks - 1) * places * block;
    for (int64_t p = 0; p < places; ++p) std::fill(last + p * block + rest, last + (p + 1) * block, 0.0f);
  }
}

}  // namespace backplane::cpu
