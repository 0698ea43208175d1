// SPDX-License-Identifier: Apache-2.0
// A value that crosses between islands, or between the framework and an island, while a model runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backplane/memory.h"
#include "host/container.h"
#include "ir/graph.h"
#include "run/memory.h"

namespace backplane {

// A value in one memory.
struct Replica {
  uint32_t memory = 0;   // position in Route::memories
  bp_buffer_t buffer{};  // `bytes` is its capacity
  uint64_t serial = 0;   // of the memory behind it
  bool user = false;     // the buffer is the framework's
  bool shared = false;   // the buffer is an import of the host replica's
  Block block;           // where the buffer is neither the framework's nor part of an arena; an import where shared
  uint32_t writer = BP_NONE;      // the task that writes it; none: the framework
  std::vector<uint32_t> readers;  // tasks, ascending
};

struct Edge {
  model::ValueId value = BP_NONE;
  uint32_t kind = BP_KIND_TENSOR;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> extents;
  uint64_t bytes = 0;             // that the extents need
  bool known = false;             // `extents` are known
  bool late = false;              // they are only when the run made it
  bool output = false;            // of the graph: its `home` never shares memory with other values
  uint32_t producer = BP_NONE;    // the step that makes it
  uint32_t home = BP_NONE;        // the replica that the framework sees; none: it sees none
  std::vector<Replica> replicas;  // none where it is no tensor
  bp_container_t* container = nullptr;
  std::unique_ptr<bp_container_t> own_container;  // where the framework bound none

  // The replica in a memory, or BP_NONE.
  uint32_t in(uint32_t memory) const;
  bool bound() const { return home != BP_NONE && replicas[home].user; }
  bp_tensor_t tensor(uint32_t replica) const;  // borrows the edge
};

// Bytes of a dense tensor; UINT64_MAX where that is more than memory can hold. Strings: 0.
uint64_t dense_bytes(bp_dtype_t dtype, uint32_t rank, const int64_t* extents);

}  // namespace backplane
