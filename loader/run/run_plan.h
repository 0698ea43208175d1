// SPDX-License-Identifier: Apache-2.0
// What follows from the extents of the inputs: all other extents, the offsets of buffers in one block for each memory,
// and the order in which tasks may run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "run/run_graph.h"
#include "run/run_state.h"
#include "run/tasks.h"

namespace backplane {

// Only `make` writes it; runs read it.
class RunPlan {
 public:
  // How a task is started.
  struct Issue {
    bool in_stream = false;               // it has a lane, and is an island or a copy of bytes
    bool reports = false;                 // the host must be notified of its end
    std::vector<uint32_t> host_before;    // tasks for whose end the host waits before it starts this one
    std::vector<uint32_t> marked_before;  // tasks of other lanes for whose marks this one waits
    bool marks = false;                   // the task signals its mark
  };

  // Both arguments must outlive the plan.
  RunPlan(const RunGraph& graph, RunState& state);

  // Plans for the input extents in `state`, and places and binds buffers there.
  Status make();
  // Plans one dynamic step likewise, after the steps before it have run.
  Status plan_dynamic_step(uint32_t step) const;

  TaskGraph& tasks() const { return *tasks_; }
  const Issue& issue(uint32_t task) const { return issues_[task]; }
  // Whether the step's extents are known only when the steps before it have run.
  bool is_dynamic_step(uint32_t step) const { return dynamic_steps_[step]; }
  bool is_dynamic_value(uint32_t value) const { return dynamic_values_[value]; }
  // Whether the caller bound an output to an input's memory.
  bool updates_inputs() const { return updates_inputs_; }

 private:
  Status infer_extents();
  // Returns the extents of the step's outputs, which its program computes from those of its inputs.
  Result<std::vector<bp_shape_t>> query_extents(const Step& step) const;
  Status infer_outputs(const Step& step) const;
  Status place_buffers();
  Status place_in(uint32_t memory);
  Status place_apart(uint32_t memory);  // if the device refuses one block for all
  void put_after(uint32_t before, uint32_t task);
  void order_buffers();
  Status check_in_place();
  void make_tasks();
  void make_issues();
  bool is_dynamic(const Task& task) const;

  const RunGraph& graph_;
  RunState& state_;
  std::vector<bool> dynamic_steps_, dynamic_values_;
  std::vector<std::vector<uint32_t>> in_arena_;  // by memory: values, by their first task
  std::vector<std::vector<uint32_t>> after_;     // by task: the tasks that must come before it
  std::vector<Issue> issues_;                    // by task
  std::unique_ptr<TaskGraph> tasks_;
  bool updates_inputs_ = false;
  // All values' extents by those of the inputs; values without an entry are dynamic.
  std::map<std::vector<int64_t>, std::vector<std::optional<std::vector<int64_t>>>> known_extents_;
};

}  // namespace backplane
