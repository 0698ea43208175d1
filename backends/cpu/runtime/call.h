// SPDX-License-Identifier: Apache-2.0
// A node of a program.
#pragma once

#include "runtime/row.h"

namespace backplane::cpu {

class ValueKernel;

// A node of the graph, ready to be planned. Operands are values, BP_NONE if omitted. They point into the graph or,
// for nodes with sub-graphs, into `reads`, where the captured values follow the inputs.
struct Call {
  std::unique_ptr<Kernel> kernel;
  const ValueKernel* whole = nullptr;  // the same kernel, if it is a ValueKernel
  const Row* row = nullptr;
  const bp_node_t* node = nullptr;
  std::span<const uint32_t> inputs;
  std::span<const uint32_t> outputs;
  bool may_fold = true;         // its result may be computed ahead of the run and kept
  bool costly_to_plan = false;  // planned during the run, where planning can be cancelled
  bool folded = false;          // it was folded: all its outputs are known for the whole program
  std::vector<uint32_t> reads;
};

}  // namespace backplane::cpu
