// SPDX-License-Identifier: Apache-2.0
// ONNX models from which test graphs are cut. A cut has the model's nodes, attributes and weights, and inputs small
// enough for the oracle.
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
// Finds every *.onnx below the folders, sorted by name. Throws std::runtime_error if a path is not a folder or has no
// model, or if two models have the same name.
std::vector<ModelFile> find_models(const std::vector<std::string>& folders);

struct ModelNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // names of values; empty for an omitted one
  Attributes attributes;                     // with all defaults written out
  bool usable = false;  // the oracle has error bounds for it, and its meaning in the newest opset is the same
};

// The parts of a model that a cut may use.
struct Model {
  std::vector<ModelNode> nodes;                 // in the order of the file
  std::map<std::string, onnx::Tensor> weights;  // FLOAT, INT32, INT64 and BOOL, of at most 1,000,000 elements
  std::map<std::string, Extents> shapes;        // of FLOAT values whose declared extents are all known
  std::map<std::string, bool> is_float;         // of declared values and weights: whether the type is FLOAT
  std::map<std::string, uint32_t> left_out;     // reasons why nodes are not usable, with the number of nodes
  uint32_t usable = 0;
};
// Throws std::runtime_error if the file cannot be read, is too large, or is not an ONNX model.
Model read_model(const std::filesystem::path& file);

}  // namespace backplane::conform
