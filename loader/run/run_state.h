// SPDX-License-Identifier: Apache-2.0
// The part of a run that changes from run to run: extents, buffers, instances of programs and their bindings. RunState
// owns all of it and is the only class that writes it. Exec passes in the framework's bindings, RunPlan what follows
// from the extents, and Runner the results of a run.
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
  // The memory of a replica (one copy of a value).
  struct Buffer {
    bp_buffer_t buffer{};     // `bytes` is its capacity
    uint64_t generation = 0;  // new_generation() of the allocation that contains the buffer
    bool user = false;        // the framework bound it
    bool imported = false;    // imported from, or the same as, the value's replica in host memory
    Block block;  // owns the memory, or the import, of a buffer that is neither the framework's nor in an arena
  };
  struct Value {
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    std::vector<int64_t> extents;
    uint64_t bytes = 0;            // the value's size in bytes
    bool known = false;            // for a tensor: whether `extents` are known; for a container: true
    std::vector<Buffer> replicas;  // in the order of RunValue::replicas
    bp_container_t* container = nullptr;
    std::unique_ptr<bp_container_t> own_container;  // used if the framework bound none; null for a tensor
  };

  // Creates the instances and streams. `graph` must outlive the result. Returns the errors of the devices.
  static Result<std::unique_ptr<RunState>> make(const RunGraph& graph);
  RunState(const RunState&) = delete;
  ~RunState() { stop(); }
  // Destroys the instances and streams. After it returns, plugins make no more callbacks. Objects of a device that was
  // abandoned are kept, and that plugin may still make callbacks.
  void stop();

  const Value& value(uint32_t value) const { return values_[value]; }
  const Buffer& replica(ReplicaRef ref) const { return values_[ref.value].replicas[ref.replica]; }
  // Whether the framework bound a buffer to the value.
  bool is_bound(uint32_t value) const;
  // The tensor borrows the extents. If `ref` has no replica, the tensor has no buffer.
  bp_tensor_t tensor(ReplicaRef ref) const;
  bp_instance_t* instance(uint32_t step) const { return steps_[step].instance; }
  const Lane& lane(uint32_t lane) const { return lanes_[lane]; }
  std::span<const Lane> lanes() const { return lanes_; }
  // The semaphore (mark) by which other lanes wait for a task; null: the host waits for the task.
  const Mark* mark(uint32_t task) const { return marks_[task].get(); }

  // ---- what the framework binds ----
  void bind_container(uint32_t value, bp_container_t* container);
  void bind_tensor(uint32_t value, bp_dtype_t dtype, const bp_buffer_t& buffer, uint64_t generation);
  // Releases the imports of memory that was bound to the value. Called as soon as other memory is bound.
  void forget_imports(uint32_t value);
  void set_input_extents(uint32_t value, const std::vector<int64_t>& extents);

  // ---- what follows from the extents of the inputs ----
  // Call this before planning again. Forgets the extents of the islands' outputs, and which replicas are imports.
  void forget_plan();
  // Errors: BP_INVALID_ARGUMENT if an extent is negative, BP_RESOURCE_EXHAUSTED if dense_bytes overflows,
  // BP_BUFFER_TOO_SMALL if the framework's buffer is too small.
  Status set_extents(uint32_t value, std::vector<int64_t> extents);
  // Allocates memory for one replica, large enough for the value. The memory grows when needed and never shrinks.
  Status allocate(ReplicaRef ref);
  // Reserves the arena of a memory: one block for values between islands and for copies of inputs and outputs.
  Status reserve_arena(uint32_t memory, uint64_t bytes);
  void place_in_arena(ReplicaRef ref, uint64_t offset, uint64_t bytes);
  // Imports the value's replica in host memory as this replica, or uses it as it is if the device works on host memory.
  // If the device refuses the import with an error of BP_CLASS_FIX_CALL, allocates memory instead.
  Status import_from_host(ReplicaRef ref);
  // Records that the replica is, or will be, an import of the replica in host memory.
  void set_imported(ReplicaRef ref) { at(ref).imported = true; }
  // Binds the island's scratch memory, its containers, and the tensors whose extents are known and whose binding has
  // changed. Creates the instance again if an output is still bound although its extents are no longer known.
  Status bind(uint32_t step);

  // ---- what a run computes ----
  // Stores the extents of a result, which the program reports during the run. Allocates memory if the framework bound
  // no buffer. `bytes` is used only for strings.
  Status set_result(ReplicaRef ref, std::span<const int64_t> extents, uint64_t bytes);
  // Stores type, extents and size of a passthrough output, which is a copy of another value or a weight. Allocates
  // memory if the framework bound no buffer.
  Status set_passthrough(uint32_t value, bp_dtype_t dtype, const std::vector<int64_t>& extents, uint64_t bytes);

 private:
  // The current binding of a slot; a tensor is bound again only if this changes.
  struct Slot {
    bp_buffer_t buffer{};
    uint64_t generation = 0;
    std::vector<int64_t> extents;
    bool bound = false;
    bp_container_t* container = nullptr;
  };
  struct StepState {
    bp_instance_t* instance = nullptr;
    std::vector<Slot> slots;  // inputs, then outputs
    uint32_t scratch = BP_NONE;
    uint64_t scratch_generation = 0;  // of the bound scratch memory
  };
  // Scratch memory shared by this run's instances on one device. The instances run one at a time, and need its contents
  // only during a run.
  struct Scratch {
    const Device* device = nullptr;
    uint64_t bytes = 0;  // the most that any of these instances needs
    Block block;
  };

  explicit RunState(const RunGraph& graph);
  Status create_instances();
  Status create_instance(uint32_t number);
  void drop_instance(uint32_t number);  // with its bindings, because an instance cannot unbind a slot
  Status create_lanes();
  static void end_imports(Value& value);
  Buffer& at(ReplicaRef ref) { return values_[ref.value].replicas[ref.replica]; }
  Status bind_scratch(uint32_t step);
  Status free_exchanged(uint32_t step);
  Status bind_slot(uint32_t step, uint32_t slot, ReplicaRef ref, Slot& bound);
  Status bind_container(uint32_t step, uint32_t slot, bp_container_t* container, Slot& bound);

  const RunGraph& graph_;
  std::vector<Block> arenas_;   // by memory: see reserve_arena
  std::vector<Block> imports_;  // by memory: its import of the arena in host memory
  std::vector<Value> values_;
  std::vector<StepState> steps_;
  std::vector<Scratch> scratch_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<Mark>> marks_;  // by task; null: the host waits for the task
};

// Whether two buffers refer to the same bytes of memory.
bool same_buffer(const bp_buffer_t& a, const bp_buffer_t& b);

}  // namespace backplane
