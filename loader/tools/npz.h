// SPDX-License-Identifier: Apache-2.0
// numpy's .npz files: zip archives of .npy files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/value.h"

namespace backplane::tools {

// The arrays of an archive with their names, in its order. Members are stored or deflated, as numpy.savez and
// savez_compressed write them. Throws onnx::Malformed with what is wrong.
std::vector<std::pair<std::string, onnx::Tensor>> read_npz(std::string_view bytes);

// An archive of stored members, as numpy.savez writes it, without a time. `fits_npy` is true for each tensor.
std::string write_npz(const std::vector<std::pair<std::string, onnx::Tensor>>& arrays);

}  // namespace backplane::tools
