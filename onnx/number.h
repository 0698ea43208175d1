// SPDX-License-Identifier: Apache-2.0
// Reads elements as numbers, whatever their type.
#pragma once

#include <complex>
#include <string>

#include "onnx/value.h"

namespace backplane::onnx {

// Floating point and complex types.
bool is_inexact(bp_dtype_t dtype);
// Element i of a numeric tensor. int64 and uint64 beyond 2^53 are rounded; real types have no imaginary part.
std::complex<double> number_at(const Tensor& tensor, uint64_t i);
// Element i of an integer, bool or sub-byte integer tensor; uint64 beyond INT64_MAX wraps.
int64_t integer_at(const Tensor& tensor, uint64_t i);
// Element i as text: "1.5", "-3", "true", "\"text\"".
std::string text_at(const Tensor& tensor, uint64_t i);

}  // namespace backplane::onnx
