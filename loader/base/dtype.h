// SPDX-License-Identifier: Apache-2.0
// Names and sizes of data types.
#pragma once

#include <cstdint>
#include <string_view>

#include "backplane/types.h"

namespace backplane {

// ONNX's spelling in lower case: "float", "int64", "float8e4m3fn"; "unknown" for BP_DTYPE_UNDEFINED and for numbers
// that ONNX does not define.
std::string_view dtype_name(bp_dtype_t dtype);
// BP_DTYPE_UNDEFINED for an unknown name.
bp_dtype_t dtype_of(std::string_view name);
// Bits per element in ONNX's raw_data; 0 for strings and unknown types.
uint32_t dtype_bits(bp_dtype_t dtype);
// The number of elements of a tensor: 0 if any extent is 0; otherwise UINT64_MAX if the product exceeds 64 bits or an
// extent is negative.
uint64_t dense_elements(uint32_t rank, const int64_t* extents);
// The bytes of a dense tensor of dense_elements() elements, rounded up to whole bytes. UINT64_MAX if the number of
// elements is UINT64_MAX or the result overflows; 0 for strings and unknown types.
uint64_t dense_bytes(bp_dtype_t dtype, uint32_t rank, const int64_t* extents);

}  // namespace backplane
