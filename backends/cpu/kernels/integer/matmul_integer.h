// SPDX-License-Identifier: Apache-2.0
// MatMulInteger on tiles of 8-bit integers, alone or with what dynamic quantization puts behind it.
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace backplane::cpu {

// MatMulInteger, which is planned by `definition` in reference mode.
std::unique_ptr<Kernel> make_matmul_integer(std::unique_ptr<Kernel> definition);

// MatMulInteger, Cast to float, Mul by a scale: four inputs of the first (absent ones are absent), then the scale, one
// for all or one for each column. It takes post-operations; what they add comes behind.
std::unique_ptr<Kernel> make_scaled_matmul();

// float(sum) · scale in the place of each sum, on the calling thread; `scales` has one for all, or one for each.
void scale_sums(int32_t* sums, int64_t count, const float* scales, bool one);

}  // namespace backplane::cpu
