// SPDX-License-Identifier: Apache-2.0
// Everything that follows from the extents of the inputs: all other extents, the offset of each buffer in its memory's
// arena, and the order of the tasks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "run/bound_inputs.h"
#include "run/run_graph.h"
#include "run/run_state.h"
#include "run/tasks.h"

namespace backplane {

// Only `make` changes the plan; runs only read it.
class RunPlan {
 public:
  // How the runner starts a task. A mark is a semaphore for which tasks of other lanes (streams) can wait.
  struct Issue {
    bool in_stream = false;  // it can be put into its lane's stream: it has a lane, and it is an island or copies bytes
    bool reports = false;    // the host must be notified when the task ends
    std::vector<uint32_t> host_before;    // tasks for which the host waits before it starts this one
    std::vector<uint32_t> marked_before;  // tasks of other lanes for whose marks this task waits
    bool marks = false;                   // the task signals its own mark
  };

  // Both arguments must outlive the plan.
  RunPlan(const RunGraph& graph, RunState& state);

  // Plans for the input extents in `state`. Allocates the buffers there and binds them to the islands, except dynamic
  // steps. BP_UNSUPPORTED if an input and an output share memory and the output would overwrite the input before its
  // last read, or if they do not share memory although the program requires that (BP_DONATE_MUST).
  Status make();
  // Plans one dynamic step in the same way, once the steps before it have run.
  Status plan_dynamic_step(uint32_t step) const;

  TaskGraph& tasks() const { return *tasks_; }
  const Issue& issue(uint32_t task) const { return issues_[task]; }
  // Whether the extents of an input of the step are known only after the steps before it have run.
  bool is_dynamic_step(uint32_t step) const { return dynamic_steps_[step]; }
  // Whether the value's extents are known only after the step that writes it has run, or has been planned in the run.
  bool is_dynamic_value(uint32_t value) const { return dynamic_values_[value]; }
  // Whether a replica for several islands of a device that works on host memory is too large to be copied, so that the
  // islands use the value's replica in host memory instead.
  bool uses_host(ReplicaRef ref) const;
  // Whether the task is a transfer that copies nothing, because its two replicas are the same buffer or one is an
  // import of the other. The task may still flush.
  bool is_shared(const Task& task) const;
  // Whether the framework bound an output to the memory of an input.
  bool updates_inputs() const { return updates_inputs_; }

 private:
  Status infer_extents();
  // Queries the extents of the step's outputs from its program, which computes them from the extents of the inputs.
  Result<std::vector<bp_shape_t>> query_extents(const Step& step) const;
  Status infer_outputs(const Step& step) const;
  Status place_buffers();
  Status place_in(uint32_t memory);
  Status place_apart(uint32_t memory);  // allocates each value separately, if the device refuses one block for all
  void put_after(uint32_t before, uint32_t task);
  void order_buffers();
  uint32_t writer_of(uint32_t output) const;
  std::vector<uint32_t> readers_of(uint32_t input) const;
  Status check_in_place();
  bool is_shareable(uint32_t value) const;
  Status check_passthroughs(const BoundInputs& bound);
  void make_tasks();
  void make_issues();
  bool is_dynamic(const Task& task) const;
  bool does_nothing(const Task& task) const;

  const RunGraph& graph_;
  RunState& state_;
  std::vector<bool> dynamic_steps_, dynamic_values_;
  std::vector<std::vector<uint32_t>> in_arena_;  // by memory: the values in its arena, ordered by first task
  std::vector<std::vector<uint32_t>> after_;     // by task: the tasks that must end before it starts
  std::vector<Issue> issues_;                    // indexed by task
  std::unique_ptr<TaskGraph> tasks_;
  bool updates_inputs_ = false;
  // By the extents of all inputs, for extents seen before: the extents of each value. nullopt for dynamic values, and
  // for values that are no tensors or that no island writes.
  std::map<std::vector<int64_t>, std::vector<std::optional<std::vector<int64_t>>>> known_extents_;
};

}  // namespace backplane
