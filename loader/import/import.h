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

// The source of a model; exactly one of the three must be set.
struct Source {
  std::string path;             // a file; external data is searched for next to it
  const void* bytes = nullptr;  // borrowed as long as the model lives
  uint64_t size = 0;
  int descriptor = -1;    // an open file; not closed
  std::string directory;  // of external data, for bytes and descriptors; empty: none allowed
  // Weights that are not in the file: each becomes the initializer of that name. Borrowed as `bytes`.
  std::vector<std::pair<std::string, bp_tensor_t>> weights;
  ImportLimits limits;
};

// Everything from bytes to canonical graph. Thread-safe; blocks on the file. BP_RESOURCE_EXHAUSTED and BP_TIMED_OUT
// where the limits are reached.
Result<std::shared_ptr<Model>> import(const Source& source);
// The passes after parsing, for models that a framework built.
Status canonicalize(Model& model);

// The operator set that nodes of ai.onnx are in after import.
uint32_t canonical_opset();

}  // namespace backplane::model
