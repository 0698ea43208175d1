// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the import: models, files, and searches in an imported graph.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "import/import.h"
#include "testing/onnx_writer.h"

namespace backplane::model::import_test {

namespace fs = std::filesystem;
using namespace testing::onnx;

inline constexpr uint32_t kFloat = BP_DTYPE_FLOAT, kInt64 = BP_DTYPE_INT64;

inline Result<std::shared_ptr<Model>> read(const std::string& bytes) {
  Source source;
  source.bytes = bytes.data();
  source.size = bytes.size();
  return import(source);
}

inline std::vector<std::string> operators(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op_type);
  return names;
}

inline const Value* find_value(const Graph& graph, std::string_view name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

// A model y = Relu(x), plus the nodes, initializers and fields of the graph that a test adds.
inline std::string relu(const Texts& nodes = {}, const Texts& initializers = {}, const std::vector<Piece>& more = {}) {
  Texts all{node("Relu", {"x"}, {"y"})};
  all.insert(all.end(), nodes.begin(), nodes.end());
  return model_bytes({{"", 17}}, graph(all, {tensor_value("x", kFloat, {2, 3})}, {tensor_value("y", kFloat, {2, 3})},
                                       initializers, more));
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("backplane-import-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline Result<std::shared_ptr<Model>> open(const std::string& path) {
  Source source;
  source.path = path;
  return import(source);
}

}  // namespace backplane::model::import_test
