// SPDX-License-Identifier: Apache-2.0
// Reads and writes numpy's .npz files: zip archives of .npy files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/value.h"

namespace backplane::tools {

// Returns an archive's arrays with their names, in its order. Members are stored or deflated, as numpy.savez and
// savez_compressed write them. Throws onnx::Malformed, which says what is wrong.
std::vector<std::pair<std::string, onnx::Tensor>> read_npz(std::string_view bytes);

// Returns an archive of stored members, as numpy.savez writes it, but without times. `fits_npy` must be true for each.
std::string write_npz(const std::vector<std::pair<std::string, onnx::Tensor>>& arrays);

}  // namespace backplane::tools
