// SPDX-License-Identifier: Apache-2.0
#include "tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/whole_file.h"
#include "command.h"
#include "npy.h"
#include "npz.h"
#include "onnx/wire.h"
#include "value_memory.h"

namespace backplane::tools {
namespace {

namespace fs = std::filesystem;

std::string file_name(const std::string& name) {
  std::string safe = name.empty() ? "_" : name;
  for (char& c : safe) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  if (safe.front() == '.') safe.front() = '_';
  constexpr size_t kLongest = 200;  // file systems take 255 bytes; an extension and a number may follow
  safe.resize(std::min(safe.size(), kLongest));
  return safe;
}

}  // namespace

NamedTensors read_arrays(const fs::path& file) {
  const std::string bytes = cli::read_file(file, most_value_bytes());
  try {
    return read_npz(bytes);
  } catch (const onnx::Malformed& error) {
    throw Failure(fmt::format("'{}': {}", file.string(), error.what()));
  }
}

void write_arrays(const fs::path& file, const NamedTensors& arrays) {
  for (const auto& [name, tensor] : arrays) {
    if (!fits_npy(tensor)) {
      throw Failure(fmt::format("'{}' cannot contain '{}': numpy cannot represent {}; name a folder instead",
                                file.string(), name, onnx::describe(tensor)));
    }
  }
  try {
    cli::write_file(file, write_npz(arrays));
  } catch (const onnx::Malformed& error) {
    throw Failure(fmt::format("'{}': {}", file.string(), error.what()));
  }
}

onnx::Value read_value(const fs::path& file, uint32_t kind, const std::string& name) {
  if (file.extension() == ".npz") {
    NamedTensors arrays = read_arrays(file);
    for (auto& [array, tensor] : arrays) {
      if (arrays.size() == 1 || array == name) return {BP_KIND_TENSOR, std::move(tensor), {}, {}};
    }
    throw Failure(fmt::format("'{}' has {} arrays, and none is named '{}'", file.string(), arrays.size(), name));
  }
  const bool is_message = file.extension() == ".pb";
  if (!is_message && file.extension() != ".npy")
    throw Failure(fmt::format("'{}': the extension must be .npy, .npz or .pb", file.string()));
  const std::string bytes = cli::read_file(file, most_value_bytes());
  try {
    if (is_message) return onnx::parse_value(bytes, kind);
    return {BP_KIND_TENSOR, read_npy(bytes), {}, {}};
  } catch (const onnx::Malformed& error) {
    throw Failure(fmt::format("'{}': {}", file.string(), error.what()));
  }
}

std::vector<TensorFile> files_of(const fs::path& folder, const std::string& name, const onnx::Value& value,
                                 std::set<std::string>& used) {
  if (value.kind == BP_KIND_TENSOR) {
    const std::string wanted = file_name(name);
    std::string stem = wanted;
    for (int next = 2; !used.insert(stem).second; ++next) stem = fmt::format("{}-{}", wanted, next);
    return {{(folder / stem).string() + (fits_npy(value.tensor) ? ".npy" : ".pb"), name, &value.tensor}};
  }
  std::vector<TensorFile> files;
  for (size_t i = 0; i < value.elements.size(); ++i) {
    for (TensorFile& file : files_of(folder, fmt::format("{}.{}", name, i), value.elements[i], used))
      files.push_back(std::move(file));
  }
  return files;
}

void write_tensor(const TensorFile& file) {
  cli::write_file(file.path, fits_npy(*file.tensor) ? write_npy(*file.tensor)
                                                    : onnx::to_message(*file.tensor, file.name).SerializeAsString());
}

}  // namespace backplane::tools
