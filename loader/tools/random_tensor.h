// SPDX-License-Identifier: Apache-2.0
// Random values for inputs that the command line does not give.
#pragma once

#include <cstdint>
#include <random>

#include "onnx/value.h"

namespace backplane::tools {

// Floats of 16 bits or more are normally distributed, integers of 8 bits or more 0 to 9, strings "0" to "9"; smaller
// types and bools are random. A seed yields the same numbers on every machine. Throws onnx::Malformed (shape, type).
onnx::Tensor random_tensor(bp_dtype_t dtype, std::vector<int64_t> extents, std::mt19937_64& random);

}  // namespace backplane::tools
