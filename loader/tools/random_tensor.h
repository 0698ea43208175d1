// SPDX-License-Identifier: Apache-2.0
// Random values for inputs that the command line does not set.
#pragma once

#include <cstdint>
#include <random>

#include "onnx/value.h"

namespace backplane::tools {

// Floats of at least 16 bits and complex numbers are normally distributed, integers of at least 8 bits are 0 to 9, and
// strings "0" to "9". 8-bit floats have magnitudes from 1/64 to 1.4 and random signs, except FLOAT8E8M0, which has
// powers of two from 1/32 to 16. Types of less than 8 bits and bools have random bits. A seed yields the same numbers
// with every standard library, up to rounding. Throws onnx::Malformed if the shape or type is not supported.
onnx::Tensor random_tensor(bp_dtype_t dtype, std::vector<int64_t> extents, std::mt19937_64& random);

}  // namespace backplane::tools
