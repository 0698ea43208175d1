// SPDX-License-Identifier: Apache-2.0
// Sums and products of two tensors of quantized values, element by element, bit-identical to DequantizeLinear, Add or
// Mul, and QuantizeLinear.
#pragma once

#include <memory>

#include "kernels/common/quantization.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct Q8Sum {
  Quantization a, b, result;  // of one type
  bool multiplies = false;    // else adds
  bool rectifies = false;     // negative results become 0

  // Whether the scales are so moderate that neither floats nor 32-bit results can overflow.
  bool stays_small() const;
};

// Both inputs have the result's extents.
std::unique_ptr<Kernel> make_q8_sum(Q8Sum sum);

}  // namespace backplane::cpu
