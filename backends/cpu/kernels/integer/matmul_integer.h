// SPDX-License-Identifier: Apache-2.0
// MatMulInteger, computed in tiles of 8-bit integers: alone, or with the scaling that follows it in dynamically
// quantized models.
#pragma once

#include <memory>

#include "runtime/kernel.h"

namespace backplane::cpu {

// Creates the kernel of MatMulInteger. `definition` is used instead in reference mode.
std::unique_ptr<Kernel> make_matmul_integer(std::unique_ptr<Kernel> definition);

// Creates a kernel for MatMulInteger, followed by a Cast to float and a Mul. The inputs are MatMulInteger's four
// (optional ones may be absent), then one scale or one per column. The kernel supports post-operations. At most
// one of them may add a tensor, which is the last input.
std::unique_ptr<Kernel> make_scaled_matmul();

// Replaces each sum by float(sum) · scale, on the calling thread. `scales` has one element if `one`, otherwise one per
// sum.
void scale_sums(int32_t* sums, int64_t count, const float* scales, bool one);

}  // namespace backplane::cpu
