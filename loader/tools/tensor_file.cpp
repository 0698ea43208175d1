// SPDX-License-Identifier: Apache-2.0
#include "tensor_file.h"

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <iterator>

#include "command.h"
#include "npy.h"
#include "npz.h"
#include "onnx/wire.h"

namespace backplane::tools {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw Failure(fmt::format("'{}' is a folder, not a file", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(fmt::format("'{}' cannot be opened: does it exist?", path.string()));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string write_tensor(const fs::path& stem, const std::string& name, const onnx::Tensor& tensor) {
  const bool as_npy = fits_npy(tensor);
  const std::string path = stem.string() + (as_npy ? ".npy" : ".pb");
  std::ofstream file(path, std::ios::binary);
  file << (as_npy ? write_npy(tensor) : onnx::to_message(tensor, name).SerializeAsString());
  file.close();
  if (!file) throw Failure(fmt::format("'{}' cannot be written", path));
  return path;
}

std::string file_name(const std::string& name) {
  std::string safe = name.empty() ? "_" : name;
  for (char& c : safe) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  if (safe.front() == '.') safe.front() = '_';
  return safe;
}

}  // namespace

NamedTensors read_arrays(const fs::path& file) {
  const std::string bytes = read_bytes(file);
  try {
    return read_npz(bytes);
  } catch (const onnx::Malformed& error) {
    throw Failure(fmt::format("'{}': {}", file.string(), error.what()));
  }
}

void write_arrays(const fs::path& file, const NamedTensors& arrays) {
  for (const auto& [name, tensor] : arrays) {
    if (!fits_npy(tensor)) {
      throw Failure(fmt::format("'{}' cannot have '{}': numpy cannot represent {}; name a folder instead",
                                file.string(), name, onnx::describe(tensor)));
    }
  }
  std::ofstream out(file, std::ios::binary);
  try {
    out << write_npz(arrays);
  } catch (const onnx::Malformed& error) {
    throw Failure(fmt::format("'{}': {}", file.string(), error.what()));
  }
  out.close();
  if (!out) throw Failure(fmt::format("'{}' cannot be written", file.string()));
}

onnx::Value read_value(const fs::path& file, uint32_t kind, const std::string& name) {
  if (file.extension() == ".npz") {
    NamedTensors arrays = read_arrays(file);
    for (auto& [array, tensor] : arrays) {
      if (arrays.size() == 1 || array == name) return {BP_KIND_TENSOR, std::move(tensor), {}, {}};
    }
    throw Failure(fmt::format("'{}' has {} arrays, and none is named '{}'", file.string(), arrays.size(), name));
  }
  const std::string bytes = read_bytes(file);
  try {
    if (file.extension() == ".pb") return onnx::parse_value(bytes, kind);
    if (file.extension() != ".npy") throw onnx::Malformed("the extension must be .npy, .npz or .pb");
    return {BP_KIND_TENSOR, read_npy(bytes), {}, {}};
  } catch (const onnx::Malformed& error) {
    throw Failure(fmt::format("'{}': {}", file.string(), error.what()));
  }
}

std::vector<std::string> write_value(const fs::path& folder, const std::string& name, const onnx::Value& value,
                                     std::set<std::string>& used) {
  if (value.kind == BP_KIND_TENSOR) {
    const std::string wanted = file_name(name);
    std::string stem = wanted;
    for (int next = 2; !used.insert(stem).second; ++next) stem = fmt::format("{}-{}", wanted, next);
    return {write_tensor(folder / stem, name, value.tensor)};
  }
  std::vector<std::string> files;
  for (size_t i = 0; i < value.elements.size(); ++i) {
    for (std::string& file : write_value(folder, fmt::format("{}.{}", name, i), value.elements[i], used))
      files.push_back(std::move(file));
  }
  return files;
}

}  // namespace backplane::tools
