// SPDX-License-Identifier: Apache-2.0
// The steps of a program for concrete input extents, in order, and the location of each value. Immutable, shared by
// executors.
#pragma once

#include "runtime/planner.h"
#include "runtime/program.h"

namespace backplane::cpu {

// Where a value is during a run.
enum class Place : uint8_t {
  kNowhere,  // no step computes it: its node was fused into another, is not read or is deferred
  kKnown,    // at the address in `values`: a weight, or computed before the run
  kInput,    // in input `index` of the program
  kOutput,   // at `offset` in the memory provided for graph output `index`
  kArena,    // at `offset` in the executor's arena
};
struct Location {
  Place place = Place::kNowhere;
  uint32_t index = 0;
  int64_t offset = 0;
};

// A step to run. Its operands are in Schedule::operands from `first_operand` on: `input_count` inputs, then
// `output_count` outputs.
struct Action {
  const Step* step;
  const bp_node_t* node;
  uint32_t first_operand;
  uint32_t input_count;
  uint32_t output_count;
  int64_t scratch;  // offset in the arena, in bytes
};

class Schedule {
 public:
  Schedule(const Program& program, std::span<const Shape> inputs);

  std::vector<Action> actions;
  std::vector<uint32_t> operands;       // indices of values, BP_NONE if omitted
  std::vector<Location> locations;      // by value
  std::vector<Tensor> values;           // by value: extents if known before the run, and data if the location is kKnown
  std::vector<bool> shaped;             // by value: whether its extents are known before the run
  std::vector<uint32_t> deferred;       // indices of calls to be planned during the run, in order
  std::vector<uint32_t> deferred_uses;  // by value: how often deferred calls and graph outputs read it
  int64_t arena_bytes = 0;

 private:
  std::vector<Planner::Planned> steps_;
  std::vector<Block> blocks_;
};

}  // namespace backplane::cpu
