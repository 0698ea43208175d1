// SPDX-License-Identifier: Apache-2.0
// Products of matrices of doubles and of 32- and 64-bit integers, which wrap around, in register tiles.
#pragma once

#include <cstdint>

#include "runtime/shape.h"

namespace backplane::cpu {

// Whether wide_product supports the type.
bool has_wide_product(bp_dtype_t dtype);

// c = a · b, row-major: a is m × k, b is k × n. On the backend's threads.
void wide_product(bp_dtype_t dtype, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c);

}  // namespace backplane::cpu
