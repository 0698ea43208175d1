// SPDX-License-Identifier: Apache-2.0
// Values in files: .npy, .npz, or ONNX's .pb.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "onnx/value.h"

namespace backplane::tools {

using NamedTensors = std::vector<std::pair<std::string, onnx::Tensor>>;

// Reads a file by its extension; `kind` (BP_KIND_*) is the kind of the model's input. Of a .npz it is the array with
// this name, or the only one. Throws Failure with the file's name.
onnx::Value read_value(const std::filesystem::path& file, uint32_t kind, const std::string& name);

// All arrays of a .npz. Throws Failure.
NamedTensors read_arrays(const std::filesystem::path& file);
// Throws Failure, also where numpy has no such type.
void write_arrays(const std::filesystem::path& file, const NamedTensors& arrays);

// Writes `folder`/`name`.npy, or .pb where numpy has no such type; the elements of containers as name.0.npy,
// name.1.npy, … Characters that are not safe in file names become '_'. Returns the files; throws Failure.
std::vector<std::string> write_value(const std::filesystem::path& folder, const std::string& name,
                                     const onnx::Value& value);

}  // namespace backplane::tools
