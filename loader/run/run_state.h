// SPDX-License-Identifier: Apache-2.0
// The state of a RunGraph that changes from run to run: extents, buffers, the instances of programs and what is bound
// to their slots. RunState owns all of it and is the only class that writes it: Exec passes on what the framework
// binds, RunPlan what follows from the extents, Runner what a run computes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backplane/memory.h"
#include "host/container.h"
#include "run/lane.h"
#include "run/memory.h"
#include "run/run_graph.h"

namespace backplane {

class RunState {
 public:
  // The bytes of a replica.
  struct Buffer {
    bp_buffer_t buffer{};     // `bytes` is its capacity
    uint64_t generation = 0;  // of the underlying allocation
    bool user = false;        // the framework's
    bool imported = false;    // an import of the replica in host memory
    Block block;              // used unless the buffer is the framework's or in an arena; also for imports
  };
  struct Value {
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    std::vector<int64_t> extents;
    uint64_t bytes = 0;            // the size that the extents need
    bool known = false;            // whether `extents` are known; for a container: true
    std::vector<Buffer> replicas;  // as in RunValue
    bp_container_t* container = nullptr;
    std::unique_ptr<bp_container_t> own_container;  // set if the framework bound none
  };

  // Creates the instances and streams. `graph` must outlive the result. Errors: those of the devices.
  static Result<std::unique_ptr<RunState>> make(const RunGraph& graph);
  RunState(const RunState&) = delete;
  ~RunState() { stop(); }
  // Destroys the instances and streams; after it returns, no plugin calls back.
  void stop();

  const Value& value(uint32_t value) const { return values_[value]; }
  const Buffer& replica(ReplicaRef ref) const { return values_[ref.value].replicas[ref.replica]; }
  // Whether the framework bound a buffer to the value.
  bool is_bound(uint32_t value) const;
  // The tensor borrows the extents; without a replica it has no buffer.
  bp_tensor_t tensor(ReplicaRef ref) const;
  bp_instance_t* instance(uint32_t step) const { return steps_[step].instance; }
  const Lane& lane(uint32_t lane) const { return lanes_[lane]; }
  std::span<const Lane> lanes() const { return lanes_; }
  // The mark by which other lanes wait for a task; null: the host waits for it.
  const Mark* mark(uint32_t task) const { return marks_[task].get(); }

  // ---- what the framework binds ----
  void bind_container(uint32_t value, bp_container_t* container);
  void bind_tensor(uint32_t value, bp_dtype_t dtype, const bp_buffer_t& buffer, uint64_t generation);
  void set_input_extents(uint32_t value, const std::vector<int64_t>& extents);

  // ---- what follows from the extents of the inputs ----
  // Called before a new plan: forgets the extents of what islands write, and which replicas are imports.
  void forget_plan();
  // Errors: BP_RESOURCE_EXHAUSTED, BP_BUFFER_TOO_SMALL (of the framework's buffer).
  Status set_extents(uint32_t value, std::vector<int64_t> extents);
  // Gives a replica its own memory, large enough for the value. Grows, never shrinks.
  Status allocate(ReplicaRef ref);
  // Reserves the block of a memory that contains the buffers between islands.
  Status reserve_arena(uint32_t memory, uint64_t bytes);
  void place_in_arena(ReplicaRef ref, uint64_t offset, uint64_t bytes);
  // Makes the replica an import of the one in host memory, or allocates it if the device cannot import that.
  Status import_from_host(ReplicaRef ref);
  // Marks the replica as an import of the replica in host memory, made now or later.
  void set_imported(ReplicaRef ref) { at(ref).imported = true; }
  // Binds those slots of the island whose extents are known and whose binding has changed.
  Status bind(uint32_t step);

  // ---- what a run computes ----
  // Stores a result whose extents the program reports during the run; `bytes` is used for strings only. Allocates it if
  // the framework bound no buffer.
  Status set_result(ReplicaRef ref, std::span<const int64_t> extents, uint64_t bytes);
  // Likewise for an output that is a copy of another value or a weight.
  Status set_passthrough(uint32_t value, bp_dtype_t dtype, const std::vector<int64_t>& extents, uint64_t bytes);

 private:
  // The current binding of a slot, so that only changes are bound.
  struct Slot {
    bp_buffer_t buffer{};
    uint64_t generation = 0;
    std::vector<int64_t> extents;
    bool bound = false;
  };
  struct StepState {
    bp_instance_t* instance = nullptr;
    std::vector<Slot> slots;  // inputs, then outputs
    uint32_t scratch = BP_NONE;
    uint64_t scratch_generation = 0;  // of the scratch memory that is bound
  };
  // Scratch memory that all instances on a device share: they run one after another, and its contents are lost between
  // runs.
  struct Scratch {
    const Device* device = nullptr;
    uint64_t bytes = 0;  // the largest size that an instance needs
    Block block;
  };

  explicit RunState(const RunGraph& graph);
  Status create_instances();
  Status create_lanes();
  Buffer& at(ReplicaRef ref) { return values_[ref.value].replicas[ref.replica]; }
  Status bind_scratch(uint32_t step);
  Status bind_slot(uint32_t step, uint32_t slot, ReplicaRef ref, Slot& bound);

  const RunGraph& graph_;
  std::vector<Block> arenas_;   // by memory
  std::vector<Block> imports_;  // by memory: the import of host memory's arena
  std::vector<Value> values_;
  std::vector<StepState> steps_;
  std::vector<Scratch> scratch_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<Mark>> marks_;  // by task
};

// Whether two buffers consist of the same bytes.
bool same_buffer(const bp_buffer_t& a, const bp_buffer_t& b);

}  // namespace backplane
