// SPDX-License-Identifier: Apache-2.0
// Runs a compiled model, one run at a time. Keeps the framework's bindings and everything derived from them. Implements
// bp_exec_t. While `run` or a submitted run is in progress, other calls return BP_BUSY. Changes of bindings and extents
// first wait for the exec's runs in a stream of the framework.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "run/compiled_model.h"
#include "run/framework_stream.h"
#include "run/run_graph.h"
#include "run/run_plan.h"
#include "run/run_state.h"
#include "run/runner.h"
#include "run/worker.h"

namespace backplane {

class Exec {
 public:
  static Result<std::unique_ptr<Exec>> create(const std::shared_ptr<const CompiledModel>& model);
  ~Exec();

  // Slots are numbered as in plugin.h. Memory and containers are borrowed until others are bound, the slot is unbound
  // or the exec is destroyed. After each `bind` the next run is planned again; after `extents` and `symbols` only if an
  // extent has changed.
  Status bind(uint32_t slot, const bp_tensor_t& tensor);
  Status bind_container(uint32_t slot, bp_container_t* container);
  Status unbind(uint32_t slot);
  // Sets the extents of all slots or, after an error, of none.
  Status extents(const bp_slot_extents_t* slots, uint32_t count, uint32_t stride);
  // Sets the extents of named dimensions in all bound inputs that have them or, after an error, in none.
  Status symbols(const bp_symbol_extent_t* symbols, uint32_t count, uint32_t stride);
  // Runs and waits; with a stream of the framework, puts the run there and returns. After an error, `done` is not
  // called and the signals do not advance. `run` may be null.
  Status run(const bp_run_t* run);
  // Runs on the exec's own thread, which the first call starts. After BP_OK, `done` and the signals report how the run
  // ends.
  Status submit(const bp_run_t* run);
  Status output(uint32_t index, bp_tensor_t& out);
  Status output_container(uint32_t index, bp_container_t*& out);

 private:
  // The framework's binding of one slot.
  struct Binding {
    bool bound = false;
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    std::vector<int64_t> extents;
    bp_buffer_t buffer{};
    uint64_t generation = 0;
    Device* device = nullptr;  // the device whose memory holds the buffer; null: host memory
    bp_container_t* container = nullptr;
    bool shareable = false;  // in host memory that the processes of isolated backends can map
    MemoryLocation location() const { return {device, device ? buffer.space : 0, shareable}; }
  };

  // Everything derived from the model and from the memories of the bindings. Each member refers to the members above
  // it.
  struct Run {
    std::shared_ptr<const CompiledModel> model;
    std::unique_ptr<const RunGraph> graph;
    std::unique_ptr<RunState> state;
    std::unique_ptr<RunPlan> plan;
    std::unique_ptr<Runner> runner;
    ~Run() {
      if (state) state->stop();  // after this, no callback reaches the runner
    }
  };

  explicit Exec(std::shared_ptr<const CompiledModel> model) : model_(std::move(model)) {}
  Status make_run();
  void drop_run() noexcept;
  void keep_run_forever() noexcept;        // because a device may still write to its memory
  void lose_abandoned() noexcept;          // if the run was abandoned: keeps run_ forever and marks the exec as lost
  const Device* abandoned_device() const;  // a device that the run uses and that was abandoned; null: none
  Status usable() const;                   // BP_BUSY: a run is in flight; BP_DEVICE_LOST: the exec is lost
  Result<Binding*> binding(uint32_t slot);
  Result<uint32_t> output_slot(uint32_t index);
  model::ValueId value_of(uint32_t slot) const;
  uint32_t run_value_of(uint32_t slot) const;  // the slot's index in RunGraph::values; requires run_
  Status check(model::ValueId value, bp_dtype_t dtype, uint32_t rank, const int64_t* extents) const;
  std::string slot_name(uint32_t slot) const;
  // Whether the run must be created again if the framework's buffer for the slot moves to another memory.
  bool needs_other_run(uint32_t slot, const MemoryLocation& before, const MemoryLocation& after) const;
  Status check_extents(uint32_t slot, uint32_t rank, const int64_t* extents);
  using SlotExtents = std::pair<uint32_t, std::vector<int64_t>>;
  void set_extents(std::vector<SlotExtents> slots);

  Status check_symbols() const;
  void apply_bindings();       // copies the bindings to the run's state
  Status prepare();            // creates the run and its plan for the current bindings, if needed
  void adopt_current_model();  // switches to the compiled model that has replaced `model_`, if any
  Status attempt(const bp_run_t& options);
  Status execute(const bp_run_t& options);  // waits for the run's `waits`, then runs
  Status enqueue_in(const bp_run_t& options);
  // Waits for this exec's runs in the framework's stream. After BP_TIMED_OUT or BP_CANCELLED, some of the runs may not
  // have ended.
  Status wait_for_stream(uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr);
  void release();  // allows the next run

  std::shared_ptr<const CompiledModel> model_;
  std::vector<Binding> inputs_, outputs_;
  std::unique_ptr<Run> run_;  // null: must be created before the next run
  bool planned_ = false;
  bool ran_ = false;
  bool lost_ = false;
  std::shared_ptr<FrameworkStream> stream_;  // the stream that may still contain runs of this exec; null: none
  std::atomic<bool> busy_{false};
  std::vector<bp_point_t> submitted_;  // the submitted run's waits, followed by its signals
  std::unique_ptr<Worker> worker_;
};

}  // namespace backplane
