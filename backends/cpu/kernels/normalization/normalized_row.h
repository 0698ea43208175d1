// SPDX-License-Identifier: Apache-2.0
// The normalization of one row, for operators that compute the row themselves.
#pragma once

#include "kernels/simd/vector_math.h"

namespace backplane::cpu {

// Writes (x - mean) / sqrt(variance + epsilon) · gain + bias for n > 0 elements. Unless `centred`, the mean counts as
// 0 and `bias` must be null. If `centred`, `bias` may be null. y may be x. Returns the mean and the inverse
// deviation. `plain`: computes as the operators are defined, for reference mode.
RowStatistics normalized_row(bool plain, const float* x, const float* gain, const float* bias, float epsilon,
                             bool centred, float* y, int64_t n);

}  // namespace backplane::cpu
