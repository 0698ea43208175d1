// SPDX-License-Identifier: Apache-2.0
// Reads and writes numpy's .npy files.
#pragma once

#include <string>
#include <string_view>

#include "onnx/value.h"

namespace backplane::tools {

// Reads a file: format versions 1 to 3, little-endian; bools, integers, floats, complex numbers, and the text
// types S and U, which become strings. Fortran order is converted to C order. Throws onnx::Malformed for everything
// else.
onnx::Tensor read_npy(std::string_view bytes);

// Whether numpy has a type for the tensor: not for bfloat16, floats below 16 bits, packed integers, and strings that
// are not UTF-8 or end in a zero byte, which numpy would lose.
bool fits_npy(const onnx::Tensor& tensor);
// `fits_npy(tensor)` must be true.
std::string write_npy(const onnx::Tensor& tensor);

}  // namespace backplane::tools
