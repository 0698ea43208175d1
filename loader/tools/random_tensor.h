// SPDX-License-Identifier: Apache-2.0
// Random values for inputs that the command line does not give.
#pragma once

#include <cstdint>
#include <random>

#include "onnx/value.h"

namespace backplane::tools {

// Floats are normally distributed, integers are 0 to 9 (or as far as the type goes), bools either, strings "0" to "9".
// The same numbers on every machine for a seed. Throws onnx::Malformed for an impossible shape or type.
onnx::Tensor random_tensor(bp_dtype_t dtype, std::vector<int64_t> extents, std::mt19937_64& random);

}  // namespace backplane::tools
