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

// A model's source; exactly one of `path`, `bytes` and `descriptor` must be set.
struct Source {
  std::string path;             // a file; external data is searched for next to it
  const void* bytes = nullptr;  // borrowed as long as the model lives
  uint64_t size = 0;
  int descriptor = -1;    // an open file; not closed
  std::string directory;  // of external data, for bytes and descriptors; empty: none allowed
  // Weights passed separately: each replaces the model's initializer or graph input of its name. Borrowed as `bytes`.
  std::vector<std::pair<std::string, bp_tensor_t>> weights;
  ImportLimits limits;
};

// Turns the source into a canonical graph. Thread-safe; blocks while reading files. BP_RESOURCE_EXHAUSTED or
// BP_TIMED_OUT if a limit is reached.
Result<std::shared_ptr<Model>> import(const Source& source);
// Runs the passes that follow parsing; called directly for models that a framework built.
Status canonicalize(Model& model);

// The opset of ai.onnx that nodes belong to after import.
uint32_t canonical_opset();

}  // namespace backplane::model
