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
  // The folder of external data. If it is empty, that of `path`; for `bytes` and `descriptor`, no external data is
  // allowed then.
  std::string directory;
  // Weights passed separately. Each replaces the model's initializer or graph input of the same name; BP_NOT_FOUND if
  // there is none. Borrowed like `bytes`.
  std::vector<std::pair<std::string, bp_tensor_t>> weights;
  ImportLimits limits;
  bool exact = false;  // declared types that contradict the inferred ones, extents included, are BP_TYPE_MISMATCH
};

// Imports the source as a canonical graph. Thread-safe; blocks while reading files. Returns BP_RESOURCE_EXHAUSTED or
// BP_TIMED_OUT when a limit is reached.
Result<std::shared_ptr<Model>> import(const Source& source);
// Runs the passes that follow parsing. Called directly for models that a framework built.
Status canonicalize(Model& model, bool exact = false);

// The opset of ai.onnx to which the import upgrades nodes.
uint32_t canonical_opset();

}  // namespace backplane::model
