// SPDX-License-Identifier: Apache-2.0
// Names and families of data types.
#pragma once

#include <string_view>

#include "backplane/types.h"

namespace backplane::ops {

// As ONNX spells it in lower case: "float", "int64", "float8e4m3fn"; "unknown" for numbers that ONNX does not give.
std::string_view dtype_name(bp_dtype_t dtype);
// BP_DTYPE_UNDEFINED where there is no such name.
bp_dtype_t dtype_of(std::string_view name);
// Bits of one element as raw_data stores it; 0 for strings and unknown types.
uint32_t dtype_bits(bp_dtype_t dtype);

}  // namespace backplane::ops
