// SPDX-License-Identifier: Apache-2.0
// Stores numbers in tensors of any type.
#pragma once

#include <string_view>

#include "onnx/value.h"

namespace backplane::tools {

// Rounds to the nearest float16. Values beyond its range become infinity; NaN becomes a quiet NaN.
uint16_t float16_bits(double value);
// Likewise, for bfloat16.
uint16_t bfloat16_bits(double value);

// Sets element `i` of a tensor of bools, fp16, bf16, fp32, fp64 or integers of at least 8 bits. Returns false if the
// tensor has another type, or an integer type that cannot represent the value.
bool set_number(onnx::Tensor& tensor, uint64_t i, double value);
// Likewise for an integer, which is not converted to double if the tensor has an integer type.
bool set_integer(onnx::Tensor& tensor, uint64_t i, int64_t value);

// Converts a tensor to another data type, for --cast. Float types get rounded values; bools are true for values other
// than 0. Integer types must represent each value exactly; otherwise throws onnx::Malformed, which names the first
// value that does not fit. Also throws onnx::Malformed if one of the types is string or has no conversion.
onnx::Tensor convert(const onnx::Tensor& tensor, bp_dtype_t dtype);

// Parses a literal: "2x3xf32=1,2,3,4,5,6", "2x3xf32=0.5" (the same value for all elements), or "f32=1" (a scalar).
// Types are f16, bf16, f32, f64, i8 to i64, u8 to u64, bool, str, or ONNX's names. Throws onnx::Malformed.
onnx::Tensor parse_literal(std::string_view text);
// Whether a text looks like a literal: extents (if any), a type, and '='.
bool is_literal(std::string_view text);

}  // namespace backplane::tools
