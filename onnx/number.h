// SPDX-License-Identifier: Apache-2.0
// Reads elements of any type as numbers.
#pragma once

#include <complex>
#include <string>

#include "onnx/value.h"

namespace backplane::onnx {

// Whether elements are floating-point or complex numbers.
bool is_inexact(bp_dtype_t dtype);
// Element `i` of a numeric tensor; throws Malformed for strings and unknown types. int64 and uint64 beyond 2^53 are
// rounded. The imaginary part is 0 for real types.
std::complex<double> number_at(const Tensor& tensor, uint64_t i);
// Element `i` of a tensor of integers (including packed ones) or bools; throws Malformed for other types. uint64 beyond
// INT64_MAX wraps.
int64_t integer_at(const Tensor& tensor, uint64_t i);
// Element `i` as text: "1.5", "-3", "true", "\"text\"". Real numbers have 6 significant digits.
std::string text_at(const Tensor& tensor, uint64_t i);

}  // namespace backplane::onnx
