// SPDX-License-Identifier: Apache-2.0
// Runs a program, one run at a time, and owns the memory of the run. Used for islands (instance.h) and for subgraphs
// (body.h).
#pragma once

#include "runtime/schedule.h"
#include "runtime/value_kernel.h"

namespace backplane::cpu {

// The caller's interface for the outputs of a run.
class Outputs {
 public:
  struct Memory {
    void* data = nullptr;
    std::shared_ptr<const void> holder;  // owner of `data`; null: `data` stays valid until the run ends
  };
  virtual ~Outputs() = default;
  // Returns memory for an output with the dtype and extents of `tensor`; the run writes the output to it. Throws
  // sdk::Error.
  virtual Memory memory(uint32_t output, const Tensor& tensor) = 0;
  // Receives an output that is not in the memory from `memory`. A run with deferred calls passes every output,
  // including those that it wrote to the memory from `memory`. Throws sdk::Error.
  virtual void take(uint32_t output, Value value) = 0;
};

class Executor {
 public:
  explicit Executor(const Program& program);

  const Program& program() const { return program_; }

  // Sets an input for all later runs. A container is set for the next run only, unless the input is a captured value.
  // Throws sdk::Error if the value does not fit the declared type.
  void set_input(uint32_t index, Value value);
  // Plans for the extents of the inputs that are set. Throws sdk::Error.
  void prepare();
  bool is_prepared() const { return !extents_changed_; }
  // Call only after `prepare`.
  const Schedule& schedule() const { return *schedule_; }
  // Prepares if extents of inputs have changed, then runs. Throws sdk::Error.
  void run(Outputs& outputs, const RunContext& context);
  // Releases all values, but keeps the arena.
  void clear();

 private:
  void* address_of(uint32_t value) const;
  void resolve();
  bool written_in_place(uint32_t output) const;
  void place_outputs(Outputs& outputs);
  void run_static(const RunContext& context);
  void run_deferred(Outputs& outputs, const RunContext& context);
  void run_deferred_call(uint32_t index, Outputs& outputs, const RunContext& context);
  void run_deferred_at(uint32_t index, const Call& call, Outputs& outputs, const RunContext& context);
  const Plan& plan_deferred(uint32_t index, std::span<const Tensor> inputs);
  void run_whole(const Call& call, const RunContext& context);
  void place_deferred(uint32_t value, Outputs& outputs);
  Value value_of(uint32_t value) const;
  Value leave(Value value) const;

  const Program& program_;
  std::vector<Value> inputs_;
  std::vector<Shape> extents_;            // extents of the inputs, for looking up the schedule
  std::vector<Outputs::Memory> targets_;  // memory of the outputs that steps write directly
  bool extents_changed_ = true;
  bool addresses_changed_ = true;
  std::shared_ptr<const Schedule> schedule_;
  Block arena_;
  int64_t arena_bytes_ = -1;
  std::vector<Tensor> operands_;  // as Schedule::operands, with current addresses

  // For deferred calls: the values, kept until their last use, and the number of remaining uses of each.
  std::vector<Value> values_;
  std::vector<uint32_t> uses_;
  // The last plan of each deferred call. If `by_extents`, it does not depend on the values of the inputs, and is reused
  // for inputs of the same extents.
  struct Planned {
    std::vector<Shape> inputs;
    Plan plan;
    bool by_extents = false;
  };
  std::vector<Planned> plans_;
};

}  // namespace backplane::cpu
