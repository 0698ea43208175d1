// SPDX-License-Identifier: Apache-2.0
// Values in files: .npy, or ONNX's .pb.
#pragma once

#include <filesystem>
#include <string>

#include "onnx/value.h"

namespace backplane::tools {

// Reads a file by its extension; `kind` (BP_KIND_*) is what the model wants there. Throws Failure with the file's name.
onnx::Value read_value(const std::filesystem::path& file, uint32_t kind);

// Writes `folder`/`name`.npy, or .pb where numpy has no such type; the elements of containers as name.0.npy,
// name.1.npy, … Characters that are no good in file names become '_'. Returns the files; throws Failure.
std::vector<std::string> write_value(const std::filesystem::path& folder, const std::string& name,
                                     const onnx::Value& value);

}  // namespace backplane::tools
