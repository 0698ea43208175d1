// SPDX-License-Identifier: Apache-2.0
// From an ONNX model of any version to the canonical graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backplane/memory.h"
#include "ir/graph.h"

namespace backplane::model {

// Where a model comes from. Exactly one of `path`, `bytes` and `descriptor` must be set.
struct Source {
  std::string path;             // a file
  const void* bytes = nullptr;  // borrowed for the lifetime of the model
  uint64_t size = 0;
  int descriptor = -1;  // an open file; not closed
  // The folder of external data. If empty, the folder of `path` is used, and a model from `bytes` or `descriptor` must
  // not have external data.
  std::string directory;
  // Weights passed separately, borrowed like `bytes`. Each replaces the model's initializer or graph input of the same
  // name; if the model has neither, import fails with BP_NOT_FOUND.
  std::vector<std::pair<std::string, bp_tensor_t>> weights;
  ImportLimits limits;
  bool exact = false;  // fail with BP_TYPE_MISMATCH if a declared type or extent contradicts the inferred one
};

// Imports the source as a canonical graph. Thread-safe; blocks while reading files. Returns BP_RESOURCE_EXHAUSTED or
// BP_TIMED_OUT when a limit is reached.
Result<std::shared_ptr<Model>> import(const Source& source);
// Runs the passes that follow parsing. Called directly for models that a framework built.
Status canonicalize(Model& model, bool exact = false);

// The opset of ai.onnx to which the import upgrades nodes.
uint32_t canonical_opset();

}  // namespace backplane::model
