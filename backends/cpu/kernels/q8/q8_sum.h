// SPDX-License-Identifier: Apache-2.0
// Adds or multiplies two tensors of quantized values element by element. Results are bit-identical to those of
// DequantizeLinear, Add or Mul, and QuantizeLinear.
#pragma once

#include <memory>

#include "kernels/common/quantization.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

struct Q8Sum {
  Quantization a, b, result;  // all of one data type
  bool multiplies = false;    // false: adds
  bool rectifies = false;     // negative results become 0

  // Whether the scales are moderate enough that neither floats nor 32-bit results can overflow.
  bool stays_small() const;
};

// Both inputs must have the result's extents: they are not broadcast.
std::unique_ptr<Kernel> make_q8_sum(Q8Sum sum);

}  // namespace backplane::cpu
