// SPDX-License-Identifier: Apache-2.0
// A program's run state: what is bound to it, the memory of one run, and the run itself.
#pragma once

#include <atomic>

#include "engine/schedule.h"

namespace backplane::cpu {

class Instance {
 public:
  explicit Instance(const Program& program);

  const Program& program() const { return program_; }

  // These throw Failure.
  void bind(const bp_binding_t& binding);
  void set_extents(uint32_t slot, uint32_t rank, const int64_t* extents);
  // Throws without having touched signals or `done` where the run is refused. A run that began and failed has called
  // `done` and advanced its signals before it throws.
  void run(const bp_run_t& run);

 private:
  struct Slot {
    Shape shape;
    void* address = nullptr;
    uint64_t capacity = 0;
    bool bound = false;
  };

  Slot& slot_of(uint32_t slot, uint32_t* out_value);
  void check_extents(uint32_t slot, uint32_t value, const Shape& shape, uint64_t capacity) const;
  std::string name_of(uint32_t slot, uint32_t value) const;

  void prepare();
  void ask_outputs(const bp_run_t& run);
  void resolve();
  void* address_of(uint32_t value) const;

  void execute(const bp_run_t& run);
  void run_static(const bp_run_t& run);
  void run_later(const bp_run_t& run);
  void run_later_call(const Call& call, const bp_run_t& run);
  void allocate_output(const Call& call, size_t index, const bp_run_t& run);
  void copy_outputs(const bp_run_t& run);
  void* ask_output(const bp_run_t& run, uint32_t output, const Tensor& tensor);
  void check_time(const bp_run_t& run) const;
  void run_step(const Step& step, const bp_node_t& node, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs, void* scratch, const bp_run_t& run) const;

  const Program& program_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<Shape> extents_;  // of the inputs, for looking up the schedule
  std::atomic<bool> busy_{false};

  bool extents_changed_ = true;
  bool addresses_changed_ = true;
  std::shared_ptr<const Schedule> schedule_;
  Block arena_;
  int64_t arena_bytes_ = -1;
  std::vector<Tensor> operands_;  // as Schedule::operands, with addresses

  // Of calls that are planned during the run: values, and the memory they lie in until their last use.
  std::vector<Tensor> values_;
  std::vector<std::shared_ptr<std::byte>> holders_;
  std::vector<uint32_t> uses_;
  std::vector<void*> given_;  // by graph output: memory that the run's `output` gave
};

}  // namespace backplane::cpu
