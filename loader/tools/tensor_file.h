// SPDX-License-Identifier: Apache-2.0
// Reads and writes values in files: .npy, .npz, or ONNX's .pb.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "onnx/value.h"

namespace backplane::tools {

using NamedTensors = std::vector<std::pair<std::string, onnx::Tensor>>;

// Reads a file by its extension; `kind` (BP_KIND_*) is the kind of the model's input. From a .npz, reads the array with
// this name, or the only one. Throws Failure with the file's name.
onnx::Value read_value(const std::filesystem::path& file, uint32_t kind, const std::string& name);

// Reads all arrays of a .npz. Throws Failure.
NamedTensors read_arrays(const std::filesystem::path& file);
// Throws Failure, also if numpy has no type for an array.
void write_arrays(const std::filesystem::path& file, const NamedTensors& arrays);

// Writes `folder`/`name`.npy, or .pb if numpy has no type for the value; the elements of containers as name.0.npy,
// name.1.npy, … Characters that are not safe in file names become '_'. Returns the files; throws Failure.
std::vector<std::string> write_value(const std::filesystem::path& folder, const std::string& name,
                                     const onnx::Value& value);

}  // namespace backplane::tools
