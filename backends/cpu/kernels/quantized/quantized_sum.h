// SPDX-License-Identifier: Apache-2.0
// Sums and products of two tensors of codes, element by element, to the bit what DequantizeLinear, Add or Mul, and
// QuantizeLinear give one after another.
#pragma once

#include <memory>

#include "kernels/common/quantization.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct QuantizedSum {
  Quantization a, b, result;  // of one type
  bool multiplies = false;    // else adds
  bool rectifies = false;     // what is below 0 becomes 0

  // Whether no number comes near the limits of floats, or a result near those of 32 bits.
  bool stays_small() const;
};

// Both inputs have the result's extents.
std::unique_ptr<Kernel> make_quantized_sum(QuantizedSum sum);

}  // namespace backplane::cpu
