// SPDX-License-Identifier: Apache-2.0
// A program's run state as the ABI sees it: what is bound, where outputs go, and how a run begins and ends.
#pragma once

#include <atomic>

#include "engine/frame.h"

namespace backplane::cpu {

class Instance {
 public:
  explicit Instance(const Program& program);

  const Program& program() const { return frame_.program(); }

  // These throw sdk::Error.
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
    bp_container_t* container = nullptr;
    bool bound = false;
  };
  class RunOutputs;

  Slot& slot_of(uint32_t slot, uint32_t* out_value);
  void check_extents(uint32_t slot, uint32_t value, const Shape& shape, uint64_t capacity) const;
  std::string name_of(uint32_t slot, uint32_t value) const;

  void bind_container(const bp_binding_t& binding, uint32_t value, Slot& slot);
  void prepare(const bp_run_t& run);
  void read_inputs();
  void execute(const bp_run_t& run);

  Frame frame_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  // by output: the memory of the run in flight; here so that runs allocate nothing
  std::vector<std::optional<void*>> given_;
  bool inputs_changed_ = true;
  std::atomic<bool> busy_{false};
};

}  // namespace backplane::cpu
