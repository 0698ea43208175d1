// SPDX-License-Identifier: Apache-2.0
// Many 16-bit floats at once: FLOAT16 and BFLOAT16 as FLOAT and back, rounded as kernels/common/float16.h rounds one.
#pragma once

#include <cstdint>

#include "backplane/graph.h"

namespace backplane::cpu {

constexpr bool is_half(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
}

// On the calling thread. `fp16` points at `n` values of 2 bytes and may have any address.
void widen(bp_dtype_t from, const void* fp16, float* floats, int64_t n);
void narrow(bp_dtype_t to, const float* floats, void* fp16, int64_t n);

}  // namespace backplane::cpu
