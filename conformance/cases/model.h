// SPDX-License-Identifier: Apache-2.0
// Models from which graphs are cut: nodes, attributes and weights, on inputs small enough for the oracle.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cases/network.h"

namespace backplane::conform {

struct ModelFile {
  std::string name;  // its path below the folder, without .onnx
  std::filesystem::path path;
};
// Every *.onnx below the folders, by name. Throws std::runtime_error for a path that is not a folder, or has no model.
std::vector<ModelFile> find_models(const std::vector<std::string>& folders);

struct ModelNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // names of values; an omitted one is empty
  Attributes attributes;                     // with all defaults written out
  bool usable = false;                       // the oracle has bounds for it, and it means the same in the newest form
};

// The parts of a model that a cut may use.
struct Model {
  std::vector<ModelNode> nodes;                 // in the order of the file
  std::map<std::string, onnx::Tensor> weights;  // without weights that are too large
  std::map<std::string, Extents> shapes;        // of FLOAT values, if declared without unknown extents
  std::map<std::string, bool> is_float;         // of declared values and of weights
  std::map<std::string, uint32_t> left_out;     // reasons why nodes are not usable, with counts
  uint32_t usable = 0;
};
// Throws std::runtime_error if the file cannot be read, is too large, or is not an ONNX model.
Model read_model(const std::filesystem::path& file);

}  // namespace backplane::conform
