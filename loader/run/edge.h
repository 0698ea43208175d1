// SPDX-License-Identifier: Apache-2.0
// A value that crosses between islands, or between the framework and an island, while a model runs.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/memory.h"
#include "host/host.h"
#include "model/graph.h"

namespace backplane {

// Memory from the environment's allocator; grows, never shrinks.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept;
  ~Block() { reset(); }
  // At least `bytes` bytes, aligned to 64; what was inside is lost. False when there is no memory.
  bool reserve(Services& services, uint64_t bytes);
  void reset();
  void* data() const { return data_; }
  uint64_t capacity() const { return capacity_; }

 private:
  Services* services_ = nullptr;
  void* data_ = nullptr;
  uint64_t capacity_ = 0;
};

struct Edge {
  model::ValueId value = BP_NONE;
  uint32_t kind = BP_KIND_TENSOR;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::vector<int64_t> extents;
  uint64_t bytes = 0;       // that the extents need
  void* data = nullptr;     // null until bound or planned
  uint64_t capacity = 0;    // at `data`
  bool user = false;        // bound by the framework
  bool known = false;       // `extents` are known
  bool output = false;      // an output of the graph: never shares memory
  uint32_t first = BP_NONE;  // the step that writes it
  uint32_t last = 0;        // the last step that reads it
  bp_container_t* container = nullptr;
  bool owns_container = false;
  Block block;

  bp_tensor_t tensor() const;  // borrows the edge
};

// Bytes of a dense tensor; UINT64_MAX where that is more than memory can hold. Strings: 0.
uint64_t dense_bytes(bp_dtype_t dtype, uint32_t rank, const int64_t* extents);

}  // namespace backplane
