// SPDX-License-Identifier: Apache-2.0
// MatMulInteger on tiles of codes, alone or with what dynamic quantization puts behind it.
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace backplane::cpu {

// MatMulInteger: its inputs.
std::unique_ptr<Kernel> make_integer_matmul_sums();

// MatMulInteger, Cast to float, Mul by a scale: four inputs of the first (absent ones are absent), then the scale, one
// for all or one for each column. It takes post-operations; what they add comes behind.
std::unique_ptr<Kernel> make_scaled_matmul();

// float(sum) · scale in the place of each sum, on the calling thread; `scales` has one for all, or one for each.
void scale_sums(int32_t* sums, int64_t count, const float* scales, bool one);

}  // namespace backplane::cpu
