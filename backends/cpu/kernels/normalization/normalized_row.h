// SPDX-License-Identifier: Apache-2.0
// The normalization of one row, for operators that compute the row themselves.
#pragma once

#include "kernels/simd/vector_math.h"

namespace backplane::cpu {

// Writes (x - mean) / sqrt(variance + epsilon) · gain + bias for n > 0 elements. If `centred` is false, the mean is
// taken as 0 and `bias` must be null; if it is true, `bias` may be null. y may be x. Returns the mean and the inverse
// of the divisor. `plain`: computes as the operators are defined, in double precision, for reference mode.
RowStatistics normalized_row(bool plain, const float* x, const float* gain, const float* bias, float epsilon,
                             bool centred, float* y, int64_t n);

}  // namespace backplane::cpu
