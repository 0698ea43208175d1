// SPDX-License-Identifier: Apache-2.0
// Fuzzes external data with any location, offset and length: either a weight's bytes come from a file in the model's
// folder, or the import fails.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "import/import.h"
#include "testing/onnx_writer.h"

namespace {

namespace fs = std::filesystem;
using namespace backplane;
using namespace backplane::testing::onnx;

// The folder contains w.bin, sub/v.bin, and the links out -> ../outside and loop -> loop. Next to it is
// ../outside/secret.
const fs::path& folder() {
  static const fs::path kFolder = [] {
    const fs::path base = fs::temp_directory_path() / ("backplane-external-fuzz-" + std::to_string(getpid()));
    const fs::path inside = base / "model";
    fs::create_directories(inside / "sub");
    fs::create_directories(base / "outside");
    for (const fs::path& file : {inside / "w.bin", inside / "sub/v.bin", base / "outside/secret"})
      std::ofstream(file) << std::string(64, 'w');
    std::error_code ignored;
    fs::create_symlink(base / "outside", inside / "out", ignored);
    fs::create_symlink(inside / "loop", inside / "loop", ignored);
    static const fs::path kBase = base;
    std::atexit([] {
      std::error_code error;
      fs::remove_all(kBase, error);
    });
    return fs::canonical(inside);
  }();
  return kFolder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The input is three NUL-terminated strings (location, offset, length) and one byte, the extent.
  std::string parts[4];
  size_t part = 0;
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == 0 && part < 3)
      ++part;
    else
      parts[part] += static_cast<char>(data[i]);
  }
  std::vector<std::pair<std::string, std::string>> entries{{"location", parts[0]}};
  if (!parts[1].empty()) entries.emplace_back("offset", parts[1]);
  if (!parts[2].empty()) entries.emplace_back("length", parts[2]);
  const int64_t extent = parts[3].empty() ? 4 : static_cast<unsigned char>(parts[3][0]);
  const std::string weight = external_tensor("w", BP_DTYPE_FLOAT, {extent}, entries);
  const std::string bytes = model_bytes({{"", 17}}, graph({node("Relu", {"w"}, {"y"})}, {}, {value("y")}, {weight}));
  model::Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  source.directory = folder().string();
  auto imported = model::import(source);
  if (!imported.ok()) return 0;
  for (const model::Weight& read : (*imported)->graph.weights) {
    if (read.file.empty()) continue;
    if (!read.file.starts_with(folder().string() + "/") || read.file_offset + read.bytes > 64) std::abort();
    for (uint64_t i = 0; i < read.bytes; ++i) {
      if (static_cast<const char*>(read.data)[i] != 'w') std::abort();
    }
  }
  return 0;
}
