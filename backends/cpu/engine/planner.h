// SPDX-License-Identifier: Apache-2.0
// The walk over an island's nodes that turns kernels into steps. It keeps what is known of each value: its extents, and its data
// where they are weights or could be computed ahead of the run (constant folding).
#pragma once

#include "engine/program.h"

namespace backplane::cpu {

class Planner {
 public:
  // Starts from what the program knows of every value.
  Planner(std::span<const Call> calls, std::span<const Tensor> values, const std::vector<bool>& known);

  void set_extents(uint32_t value, const Shape& shape);

  struct Planned {
    uint32_t call;
    std::unique_ptr<Step> step;
  };
  // Plans all calls that are not folded yet. Those that it could neither plan nor fold end up in `later`. Throws Failure.
  void walk();

  std::vector<Tensor> values;   // by value
  std::vector<bool> shaped;     // by value: its extents are known
  std::vector<bool> known;      // by value: its data are known
  std::vector<Planned> steps;   // to be run, in order
  std::vector<uint32_t> folded; // calls whose outputs became known
  std::vector<uint32_t> later;  // calls to be planned during the run, in order
  std::vector<Block> blocks;    // memory of the values that became known
  int64_t block_bytes = 0;

 private:
  bool plan(uint32_t index);
  void fold(uint32_t index, const Step& step, std::span<const Tensor> inputs, std::span<Tensor> outputs);

  std::span<const Call> calls_;
};

// The node's inputs or outputs as tensors, absent ones included.
std::vector<Tensor> gather(std::span<const uint32_t> operands, std::span<const Tensor> values);

// Bytes of a tensor. Throws Failure where extents are negative or their product is beyond all memory.
int64_t checked_bytes(bp_dtype_t dtype, const Shape& shape, const bp_node_t& node);

// A node by name, or by number where it has none, for messages.
std::string describe(const bp_node_t& node);

}  // namespace backplane::cpu
