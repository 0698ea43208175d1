// SPDX-License-Identifier: Apache-2.0
// Properties of a floating-point type.
#pragma once

#include <cstdint>

#include "backplane/types.h"

namespace backplane::conform {

struct FloatType {
  int fraction_bits;  // `frac` in the bounds: fp32 23, fp16 10, bf16 7
  int min_exponent;   // of the smallest normal number
  double max;         // the largest finite number

  double min_normal() const;
  // The distance between adjacent numbers at |x|; for subnormal x, as at the smallest normal number.
  double ulp(double x) const;
  // 2^-fraction_bits
  double epsilon() const;
  // x rounded to the nearest number of the type, ties to even.
  double round(double x) const;
};

// Throws std::invalid_argument for types other than FLOAT, DOUBLE, FLOAT16 and BFLOAT16.
const FloatType& float_type(bp_dtype_t dtype);
// The bits of x in FLOAT16 or BFLOAT16.
uint16_t encode16(const FloatType& type, double x);
double decode16(const FloatType& type, uint16_t bits);

}  // namespace backplane::conform
