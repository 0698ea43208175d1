// SPDX-License-Identifier: Apache-2.0
// Numbers written into tensors, whatever their type.
#pragma once

#include <string_view>

#include "onnx/value.h"

namespace backplane::tools {

// The nearest float16; beyond its range infinity, NaN as a quiet one.
uint16_t float16_bits(double value);
// The same for bfloat16.
uint16_t bfloat16_bits(double value);

// Sets element i of a tensor of bools, integers from 8 bits, fp16, bf16, fp32 or fp64; false where an integer type
// cannot hold the value, or the tensor has another type.
bool set_number(onnx::Tensor& tensor, uint64_t i, double value);
// The same for integers, exactly.
bool set_integer(onnx::Tensor& tensor, uint64_t i, int64_t value);

// A tensor with the same values in another type, for --cast. Floats are rounded; an integer type must hold each value.
// Throws onnx::Malformed that names the first one that it cannot hold.
onnx::Tensor convert(const onnx::Tensor& tensor, bp_dtype_t dtype);

// "2x3xf32=1,2,3,4,5,6", or "2x3xf32=0.5" for that value throughout, "f32=1" for a scalar. Types are f16, bf16, f32,
// f64, i8 to i64, u8 to u64, bool, str, or ONNX's names. Throws onnx::Malformed.
onnx::Tensor parse_literal(std::string_view text);
// Whether a text looks like such a literal: it starts with extents or a type, and '='.
bool is_literal(std::string_view text);

}  // namespace backplane::tools
