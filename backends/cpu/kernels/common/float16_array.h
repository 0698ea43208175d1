// SPDX-License-Identifier: Apache-2.0
// Converts arrays of 16-bit floats (FLOAT16 or BFLOAT16) to float and back, with the rounding of
// kernels/common/float16.h.
#pragma once

#include <cstdint>

#include "backplane/graph.h"

namespace backplane::cpu {

constexpr bool is_16_bit_float(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
}

// Convert `n` numbers on the calling thread. `bits` points to values of 2 bytes of the named type and need not be
// aligned.
void widen(bp_dtype_t from, const void* bits, float* floats, int64_t n);
void narrow(bp_dtype_t to, const float* floats, void* bits, int64_t n);

}  // namespace backplane::cpu
