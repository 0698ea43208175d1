// SPDX-License-Identifier: Apache-2.0
// Plans a program's nodes in order and turns their kernels into steps. Tracks which values have known extents, and
// which have known data: weights and values computed before the run (folding).
#pragma once

#include <chrono>
#include <functional>

#include "runtime/at_node.h"
#include "runtime/call.h"
#include "runtime/memory.h"
#include "runtime/tables.h"

namespace backplane::cpu {

// The time left for folding nodes, and the bytes left for their results. Nodes that would exceed either are computed
// during the run.
struct FoldAllowance {
  std::chrono::nanoseconds time;
  int64_t bytes;
};

class Planner {
 public:
  // Starts with the program's values and known data. `calls` and `allowance` must outlive the planner.
  Planner(const PlanContext& context, std::span<const Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known, FoldAllowance& allowance);

  // Sets the extents of a value. Throws sdk::Error if no tensor can have them (`countable` in shape.h).
  void set_extents(uint32_t value, const Shape& shape);

  // A step and its operands: in `operands` from `first_operand` on, `input_count` inputs, then `output_count` outputs.
  struct Planned {
    uint32_t call;
    std::unique_ptr<Step> step;
    uint32_t first_operand;
    uint32_t input_count;
    uint32_t output_count;
  };
  // Plans or folds all calls that are not skipped. Calls for which neither is possible are added to `deferred`.
  // Throws sdk::Error.
  void walk();
  // Call after `walk`. Makes `outputs` and the inputs of deferred calls dense. Their indices do not change.
  void make_dense(std::span<const uint32_t> outputs);

  // Returns the data of a known value at an address that is aligned for the value's type.
  std::function<void*(uint32_t value)> aligned;
  // Called with an input that a kernel has packed into its own copy.
  std::function<void(uint32_t value)> on_packed;

  // Indexed by value. Entries after the graph's values hold some of these values in another format.
  std::vector<Tensor> values;
  std::vector<bool> shaped;    // by value: whether its extents are known
  std::vector<bool> known;     // by value: whether its data are known before the run
  std::vector<Planned> steps;  // to be run in this order
  std::vector<uint32_t> operands;
  std::vector<uint32_t> folded;          // calls whose outputs were computed by this planner
  std::vector<uint32_t> costly;          // calls that take too long to fold
  std::vector<uint32_t> costly_to_plan;  // calls with known inputs that take too long to plan
  std::vector<uint32_t> deferred;        // calls to be planned during the run, in order
  std::vector<Block> blocks;             // memory of values that were folded
  bool transient = false;                // whether the program outlives the values folded here
  int64_t block_bytes = 0;

 private:
  bool plan(uint32_t index);
  bool plan_at(uint32_t index, const Call& call);
  Plan plan_kernel(const Call& call, std::vector<Tensor>& inputs);
  void add_step(uint32_t call, std::unique_ptr<Step> step, std::span<const uint32_t> inputs,
                std::span<const uint32_t> outputs);
  uint32_t in_format(uint32_t value, Format format, uint32_t call);
  bool fold(uint32_t index, const Step& step, std::span<const Tensor> inputs, std::span<Tensor> outputs);

  TableAllowance tables_;
  PlanContext context_;  // with tables_
  std::span<const Call> calls_;
  FoldAllowance& allowance_;
  // By value: the same value in the other format, or BP_NONE; a copy refers to its original.
  std::vector<uint32_t> twins_;
  // Operands of the call being planned. They are members so that planning a call does not allocate.
  std::vector<Tensor> inputs_, outputs_;
  std::vector<uint32_t> call_operands_;
};

// Whether the tensor's address is not aligned for its type.
bool misaligned(const Tensor& tensor);

// Return a node's inputs or outputs as tensors; an omitted one is Tensor{}.
std::vector<Tensor> gather(std::span<const uint32_t> operands, std::span<const Tensor> values);
void gather(std::span<const uint32_t> operands, std::span<const Tensor> values, std::vector<Tensor>& out_tensors);

// Returns a tensor's size in bytes. Throws sdk::Error if an extent is negative or the size exceeds `max_bytes`.
int64_t checked_bytes(bp_dtype_t dtype, const Shape& shape, int64_t max_bytes);

// Whether a node has outputs and all of them are empty, so that there is nothing to compute.
bool all_empty(std::span<const Tensor> outputs);
// For a node with `all_empty` outputs: replaces the plan's step with one that does nothing, unless the step is an
// alias.
Plan without_work(Plan plan);

}  // namespace backplane::cpu
