// SPDX-License-Identifier: Apache-2.0
// The machine as backends see it.
#pragma once

#include <vector>

#include "backplane/host.h"
#include "base/status.h"

namespace backplane {

class Topology {
 public:
  // Asks the system; takes some milliseconds. BP_UNSUPPORTED where it cannot tell.
  static Result<Topology> read();
  // Cores with a processor that this process may use.
  uint32_t allowed_cores() const;
  // Points into this object.
  bp_topology_t table() const;

 private:
  std::vector<bp_core_t> cores_;
  uint32_t numa_count_ = 1;
  uint64_t memory_bytes_ = 0;
  uint64_t cache_line_bytes_ = 64;
};

}  // namespace backplane
