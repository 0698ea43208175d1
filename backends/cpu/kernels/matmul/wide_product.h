// SPDX-License-Identifier: Apache-2.0
// Products of matrices of doubles and of whole numbers of 32 and 64 bits, which wrap around, as tiles in registers.
#pragma once

#include <cstdint>

#include "runtime/shape.h"

namespace backplane::cpu {

// Whether wide_product knows the type.
bool has_wide_product(bp_dtype_t dtype);

// c = a · b, row-major: a is m × k, b is k × n. On the backend's threads.
void wide_product(bp_dtype_t dtype, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c);

}  // namespace backplane::cpu
