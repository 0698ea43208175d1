// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with a matrix. Their speed is limited by how fast the matrix is read from memory.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// Up to this number of rows gemv is faster than a blocked product, which would first copy the matrix.
inline constexpr int64_t kGemvRows = 4;

// y[i, j] = sum over l of x[i, l] · b[j, l] for m ≤ kGemvRows rows; b is [n, k], row-major. Runs on the threads of the
// device.
void gemv_transposed(int64_t m, int64_t n, int64_t k, const float* x, const float* b, float* y);
// Like gemv_transposed, but b is [k, n].
void gemv(int64_t m, int64_t n, int64_t k, const float* x, const float* b, float* y);

}  // namespace backplane::cpu
