// SPDX-License-Identifier: Apache-2.0
// Plans an island's nodes in order and turns kernels into steps. Tracks what is known about each value: its extents,
// and its data if it is a weight or was computed before the run (constant folding).
#pragma once

#include <chrono>
#include <functional>

#include "runtime/at_node.h"
#include "runtime/call.h"
#include "runtime/memory.h"

namespace backplane::cpu {

// The remaining time for folding, and the remaining bytes for its results. Nodes that need more are computed during
// the run.
struct FoldAllowance {
  std::chrono::nanoseconds time;
  int64_t bytes;
};

class Planner {
 public:
  // Starts with what the program knows about every value. `allowance` must outlive the planner.
  Planner(const PlanContext& context, std::span<const Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known, FoldAllowance& allowance);

  void set_extents(uint32_t value, const Shape& shape);

  // A step. Its operands in `operands`, from `first_operand` on: `input_count` inputs, then `output_count` outputs.
  struct Planned {
    uint32_t call;
    std::unique_ptr<Step> step;
    uint32_t first_operand;
    uint32_t input_count;
    uint32_t output_count;
  };
  // Plans or folds all calls that are not folded yet; those for which neither is possible end up in `deferred`.
  // Throws sdk::Error.
  void walk();
  // After the walk: makes `outputs` and the inputs of deferred calls dense, under their own value numbers.
  void make_dense(std::span<const uint32_t> outputs);

  // Returns the data of a known value at an address aligned for its type.
  std::function<void*(uint32_t value)> aligned;
  // Called with an input of which a kernel has packed its own copy.
  std::function<void(uint32_t value)> on_packed;

  // Indexed by value. Entries beyond the graph's values are copies of values in another format.
  std::vector<Tensor> values;
  std::vector<bool> shaped;    // by value: whether its extents are known
  std::vector<bool> known;     // by value: whether its data are known
  std::vector<Planned> steps;  // to be run, in order
  std::vector<uint32_t> operands;
  std::vector<uint32_t> folded;          // calls whose outputs became known
  std::vector<uint32_t> costly;          // calls that take too long to fold
  std::vector<uint32_t> costly_to_plan;  // calls with known inputs that take too long to plan
  std::vector<uint32_t> deferred;        // calls to be planned during the run, in order
  std::vector<Block> blocks;             // memory of the values that became known
  bool transient = false;                // whether values that become known are freed before the program is
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
  std::vector<uint32_t> twins_;  // by value: its copy in the other format (of a copy: the original), or BP_NONE
  // Operands of the call that is being planned. Members, so that they are not allocated for each call.
  std::vector<Tensor> inputs_, outputs_;
  std::vector<uint32_t> call_operands_;
};

// Whether the data's address is not aligned for the tensor's type.
bool misaligned(const Tensor& tensor);

// A node's inputs or outputs as tensors; omitted ones as Tensor{}.
std::vector<Tensor> gather(std::span<const uint32_t> operands, std::span<const Tensor> values);
void gather(std::span<const uint32_t> operands, std::span<const Tensor> values, std::vector<Tensor>& out_tensors);

// Returns a tensor's size in bytes. Throws sdk::Error if an extent is negative or the size exceeds `max_bytes`.
int64_t checked_bytes(bp_dtype_t dtype, const Shape& shape, int64_t max_bytes);

// Whether a node has outputs and none of them has an element: there is nothing to compute.
bool all_empty(std::span<const Tensor> outputs);
// For such a node: replaces the plan's step by one that does nothing, unless the step is an alias.
Plan without_work(Plan plan);

}  // namespace backplane::cpu
