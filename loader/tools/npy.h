// SPDX-License-Identifier: Apache-2.0
// Reads and writes numpy's .npy files.
#pragma once

#include <string>
#include <string_view>

#include "onnx/value.h"

namespace backplane::tools {

// Reads a .npy file of format version 1 to 3. Supports little-endian bools, integers, floats and complex numbers, and
// the text types S and U, which become strings. Converts Fortran order to C order. Throws onnx::Malformed for anything
// else.
onnx::Tensor read_npy(std::string_view bytes);

// Whether numpy can represent the tensor. It cannot represent bfloat16, floats below 16 bits, packed integers, and
// strings that are not UTF-8 or end in a zero byte, which numpy would drop.
bool fits_npy(const onnx::Tensor& tensor);
// Requires fits_npy(tensor).
std::string write_npy(const onnx::Tensor& tensor);

}  // namespace backplane::tools
