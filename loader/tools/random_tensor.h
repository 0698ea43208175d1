// SPDX-License-Identifier: Apache-2.0
// Random values for inputs that the command line does not give.
#pragma once

#include <cstdint>
#include <random>

#include "onnx/value.h"

namespace backplane::tools {

// Floats are normally distributed, integers are 0 to 9 (or to the type's maximum), bools are random, strings "0" to
// "9". A seed yields the same numbers on every machine. Throws onnx::Malformed for an invalid shape or type.
onnx::Tensor random_tensor(bp_dtype_t dtype, std::vector<int64_t> extents, std::mt19937_64& random);

}  // namespace backplane::tools
