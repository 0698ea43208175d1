// SPDX-License-Identifier: Apache-2.0
// Reads and writes numpy's .npz files: zip archives of .npy files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/value.h"
#include "value_memory.h"

namespace backplane::tools {

// Returns the arrays and their names, in the archive's order. Members may be stored or deflated, as numpy.savez and
// savez_compressed write them. Throws onnx::Malformed with a description of the fault, also if the members have more
// than `most` bytes, because a small archive may state any size.
std::vector<std::pair<std::string, onnx::Tensor>> read_npz(std::string_view bytes, uint64_t most = most_value_bytes());

// Returns an archive of stored members, like numpy.savez but without timestamps. Requires fits_npy for each array.
// Throws onnx::Malformed if there are more than 10,000 arrays or 4 GB.
std::string write_npz(const std::vector<std::pair<std::string, onnx::Tensor>>& arrays);

}  // namespace backplane::tools
