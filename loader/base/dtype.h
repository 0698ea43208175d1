// SPDX-License-Identifier: Apache-2.0
// Names and families of data types.
#pragma once

#include <cstdint>
#include <string_view>

#include "backplane/types.h"

namespace backplane {

// As ONNX spells it in lower case: "float", "int64", "float8e4m3fn"; "unknown" for numbers that ONNX does not give.
std::string_view dtype_name(bp_dtype_t dtype);
// BP_DTYPE_UNDEFINED where there is no such name.
bp_dtype_t dtype_of(std::string_view name);
// Bits of one element as raw_data stores it; 0 for strings and unknown types.
uint32_t dtype_bits(bp_dtype_t dtype);
// Elements of a tensor: 0 where an extent is 0, whatever the others are and in any order; UINT64_MAX where the product
// exceeds 64 bits or an extent is negative.
uint64_t dense_elements(uint32_t rank, const int64_t* extents);
// Bytes of a dense tensor; UINT64_MAX where that exceeds 64 bits. Strings: 0.
uint64_t dense_bytes(bp_dtype_t dtype, uint32_t rank, const int64_t* extents);

}  // namespace backplane
