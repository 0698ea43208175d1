// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

class ValueKernel;

// A node of the graph, ready to be planned. `inputs` and `outputs` hold the indices of values, BP_NONE if omitted. They
// point into the graph, with two exceptions: `inputs` points into `reads` for a node with subgraphs, whose captured
// values follow its inputs, and for a fused call (passes/).
struct Call {
  std::unique_ptr<Kernel> kernel;
  const ValueKernel* whole = nullptr;  // `kernel`, if it is a ValueKernel; else null
  const Row* row = nullptr;
  const bp_node_t* node = nullptr;
  std::span<const uint32_t> inputs;
  std::span<const uint32_t> outputs;
  bool may_fold = true;         // its outputs may be computed before the run, if its inputs are known
  bool costly_to_plan = false;  // planning it before the run would take too long: plan it during the run
  bool skipped = false;         // not planned: computed at compile time, fused into another call, or never read
  std::vector<uint32_t> reads;
};

}  // namespace backplane::cpu
