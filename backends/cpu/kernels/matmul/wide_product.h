// SPDX-License-Identifier: Apache-2.0
// Products of matrices of doubles, or of 32- or 64-bit integers, which wrap around. They are computed in tiles whose
// sums stay in registers.
#pragma once

#include <cstdint>

#include "runtime/shape.h"

namespace backplane::cpu {

// Whether wide_product supports the type.
bool has_wide_product(bp_dtype_t dtype);

// c = a · b, row-major: a is m × k, b is k × n. Runs on the threads of the device.
void wide_product(bp_dtype_t dtype, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c);

}  // namespace backplane::cpu
