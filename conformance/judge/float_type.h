// SPDX-License-Identifier: Apache-2.0
// Properties of a floating-point type.
#pragma once

#include <cstdint>

#include "backplane/types.h"

namespace backplane::conform {

struct FloatType {
  int fraction_bits;  // `frac` in the bounds: 23 for fp32, 10 for fp16, 7 for bf16
  int min_exponent;   // exponent of the smallest normal number
  double max;         // the largest finite number

  double min_normal() const;
  // The distance between adjacent numbers at |x|. All subnormal x have that of the smallest normal number.
  double ulp(double x) const;
  // 2^-fraction_bits
  double epsilon() const;
  // Rounds x to the nearest number of the type, ties to even.
  double round(double x) const;
};

// Throws std::invalid_argument for types other than FLOAT, DOUBLE, FLOAT16 and BFLOAT16.
const FloatType& float_type(bp_dtype_t dtype);
// The bits of x as FLOAT16 or BFLOAT16.
uint16_t encode16(const FloatType& type, double x);
double decode16(const FloatType& type, uint16_t bits);

}  // namespace backplane::conform
