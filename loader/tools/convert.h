// SPDX-License-Identifier: Apache-2.0
// Stores numbers in tensors of any type.
#pragma once

#include <string_view>

#include "onnx/value.h"

namespace backplane::tools {

// The nearest float16; infinity beyond its range, a quiet NaN for NaN.
uint16_t float16_bits(double value);
// Likewise for bfloat16.
uint16_t bfloat16_bits(double value);

// Sets element i of a tensor of bools, integers of at least 8 bits, fp16, bf16, fp32 or fp64. False if an integer type
// cannot represent the value, or the tensor has another type.
bool set_number(onnx::Tensor& tensor, uint64_t i, double value);
// Likewise for an integer, without a detour over double for integer types.
bool set_integer(onnx::Tensor& tensor, uint64_t i, int64_t value);

// Returns a tensor with the same values in another type, for --cast. Floats are rounded; integer types must represent
// each value. Throws onnx::Malformed, which names the first value that does not fit.
onnx::Tensor convert(const onnx::Tensor& tensor, bp_dtype_t dtype);

// Parses "2x3xf32=1,2,3,4,5,6", "2x3xf32=0.5" for that value in all elements, or "f32=1" for a scalar. Types are f16,
// bf16, f32, f64, i8 to i64, u8 to u64, bool, str, or ONNX's names. Throws onnx::Malformed.
onnx::Tensor parse_literal(std::string_view text);
// Whether a text looks like such a literal: extents (if any), a type, '='.
bool is_literal(std::string_view text);

}  // namespace backplane::tools
