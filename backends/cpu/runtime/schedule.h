// SPDX-License-Identifier: Apache-2.0
// An island with concrete extents: the steps in order, and the location of each value. Immutable, shared by
// executors.
#pragma once

#include "runtime/planner.h"
#include "runtime/program.h"

namespace backplane::cpu {

// The location of a value during a run.
enum class Place : uint8_t {
  kNowhere,  // no step computes it: its node was fused into another, or is planned during the run
  kKnown,    // in the tensor of `values`: a weight, or computed before the run
  kInput,    // in the program's input `index`
  kOutput,   // at `offset` of the memory given for graph output `index`
  kArena,    // at `offset` of the executor's arena
};
struct Location {
  Place place = Place::kNowhere;
  uint32_t index = 0;
  int64_t offset = 0;
};

// A step. Its operands in Schedule::operands, from `first_operand` on: `input_count` inputs, `output_count` outputs.
struct Action {
  const Step* step;
  const bp_node_t* node;
  uint32_t first_operand;
  uint32_t input_count;
  uint32_t output_count;
  int64_t scratch;  // offset in the arena
};

class Schedule {
 public:
  Schedule(const Program& program, std::span<const Shape> inputs);

  std::vector<Action> actions;
  std::vector<uint32_t> operands;       // values, BP_NONE where omitted
  std::vector<Location> locations;      // by value
  std::vector<Tensor> values;           // by value: extents if known before the run, data if kKnown
  std::vector<bool> shaped;             // by value
  std::vector<uint32_t> deferred;       // calls to be planned during the run, in order
  std::vector<uint32_t> deferred_uses;  // by value: how often those calls and the graph's outputs read it
  int64_t arena_bytes = 0;

 private:
  std::vector<Planner::Planned> steps_;
  std::vector<Block> blocks_;
};

}  // namespace backplane::cpu
