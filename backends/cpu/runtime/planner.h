// SPDX-License-Identifier: Apache-2.0
// Walks over the nodes of an island and turns kernels into steps. Keeps what is known of each value: its extents, and
// its data if it is a weight or was computed before the run (constant folding).
#pragma once

#include <chrono>
#include <functional>

#include "runtime/at_node.h"
#include "runtime/call.h"
#include "runtime/memory.h"

namespace backplane::cpu {

// The remaining time for folding, and the remaining bytes for its results. Nodes that need more are computed in the
// run.
struct FoldAllowance {
  std::chrono::nanoseconds time;
  int64_t bytes;
};

class Planner {
 public:
  // Starts with what the program knows of every value. `allowance` outlives the planner.
  Planner(const PlanContext& context, std::span<const Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known, FoldAllowance& allowance);

  void set_extents(uint32_t value, const Shape& shape);

  // A step and its operands: `input_count` and then `output_count` entries of `operands`.
  struct Planned {
    uint32_t call;
    std::unique_ptr<Step> step;
    uint32_t first_operand;
    uint32_t input_count;
    uint32_t output_count;
  };
  // Plans all calls that are not folded yet. Those that it could neither plan nor fold end up in `deferred`. Throws
  // sdk::Error.
  void walk();
  // After the walk: `outputs` and what `deferred` reads become dense under their own numbers.
  void make_dense(std::span<const uint32_t> outputs);

  // Returns the data of a known value at an address that suits its type.
  std::function<void*(uint32_t value)> aligned;
  // Called for values whose data no kernel will read again.
  std::function<void(uint32_t value)> on_packed;

  // By value. Entries after the graph's values are copies of values in another format.
  std::vector<Tensor> values;
  std::vector<bool> shaped;    // by value: its extents are known
  std::vector<bool> known;     // by value: its data are known
  std::vector<Planned> steps;  // to be run, in order
  std::vector<uint32_t> operands;
  std::vector<uint32_t> folded;          // calls whose outputs became known
  std::vector<uint32_t> costly;          // calls that take too long to be folded
  std::vector<uint32_t> costly_to_plan;  // calls that, all inputs being known, take too long to be planned
  std::vector<uint32_t> deferred;        // calls to be planned during the run, in order
  std::vector<Block> blocks;             // memory of the values that became known
  bool transient = false;                // values that become known do not live as long as the program
  int64_t block_bytes = 0;

 private:
  bool plan(uint32_t index);
  bool plan_at(uint32_t index, const Call& call);
  Plan plan_kernel(const Call& call, std::vector<Tensor>& inputs);
  void add_step(uint32_t call, std::unique_ptr<Step> step, std::span<const uint32_t> inputs,
                std::span<const uint32_t> outputs);
  uint32_t in_format(uint32_t value, Format format, uint32_t call);
  bool fold(uint32_t index, const Step& step, std::span<const Tensor> inputs, std::span<Tensor> outputs);

  PlanContext context_;
  std::span<const Call> calls_;
  FoldAllowance& allowance_;
  std::vector<uint32_t> twins_;  // by value: the same in the other format, or BP_NONE
  // Operands of the call that is being planned. Members, so that they are not allocated for each call.
  std::vector<Tensor> inputs_, outputs_;
  std::vector<uint32_t> call_operands_;
};

// Whether the data are not aligned for their type.
bool misaligned(const Tensor& tensor);

// The node's inputs or outputs as tensors, absent ones included.
std::vector<Tensor> gather(std::span<const uint32_t> operands, std::span<const Tensor> values);
void gather(std::span<const uint32_t> operands, std::span<const Tensor> values, std::vector<Tensor>& out_tensors);

// Bytes of a tensor. Throws sdk::Error where extents are negative or it is larger than `max_bytes`.
int64_t checked_bytes(bp_dtype_t dtype, const Shape& shape, int64_t max_bytes);

// Whether a node has outputs and none of them has an element: there is nothing to compute.
bool all_empty(std::span<const Tensor> outputs);
// The plan with a step that does nothing, for such a node.
Plan without_work(Plan plan);

}  // namespace backplane::cpu
