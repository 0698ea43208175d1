// SPDX-License-Identifier: Apache-2.0
// Reads and writes values in files: .npy, .npz, or ONNX's .pb.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "onnx/value.h"

namespace backplane::tools {

using NamedTensors = std::vector<std::pair<std::string, onnx::Tensor>>;

// Reads a value from a file, by its extension. `kind` (BP_KIND_*) is the kind of the model's input. From a .npz, reads
// the array `name`, or the only array. Throws cli::FileError if the file cannot be read, and Failure, which names the
// file, if its content is invalid.
onnx::Value read_value(const std::filesystem::path& file, uint32_t kind, const std::string& name);

// Reads all arrays of a .npz. Throws like read_value.
NamedTensors read_arrays(const std::filesystem::path& file);
// Writes a .npz. Throws Failure if the format cannot contain an array, and cli::FileError if writing fails.
void write_arrays(const std::filesystem::path& file, const NamedTensors& arrays);

// A file to be written, of a tensor that is owned by the caller.
struct TensorFile {
  std::string path, name;
  const onnx::Tensor* tensor;
};

// Names the files of a value: `folder`/`name`.npy, or .pb if numpy cannot represent the value. The elements of a
// container are name.0.npy, name.1.npy, … Characters that are unsafe in file names become '_'. A name that is in `used`
// gets a number: name-2.npy; adds the names of the files, without extensions, to `used`.
std::vector<TensorFile> files_of(const std::filesystem::path& folder, const std::string& name, const onnx::Value& value,
                                 std::set<std::string>& used);
// Throws cli::FileError.
void write_tensor(const TensorFile& file);

}  // namespace backplane::tools
