// SPDX-License-Identifier: Apache-2.0
// The machine's processors and memory, in the form in which backends query them.
#pragma once

#include <vector>

#include "backplane/host.h"
#include "base/status.h"

namespace backplane {

class Topology {
 public:
  // Queries the system, which takes milliseconds. BP_UNSUPPORTED if the topology cannot be read.
  static Result<Topology> read();
  // The number of cores with at least one processor that this process may use.
  uint32_t allowed_cores() const;
  // The table points into this object.
  bp_topology_t table() const;

 private:
  std::vector<bp_core_t> cores_;
  uint32_t numa_count_ = 1;
  uint64_t memory_bytes_ = 0;
  uint64_t cache_line_bytes_ = 64;
};

}  // namespace backplane
