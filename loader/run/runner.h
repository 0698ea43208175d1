// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of a RunGraph in the order of its plan, concurrently if the plan allows it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "host/cancel.h"
#include "host/trace.h"
#include "run/compiled_model.h"
#include "run/framework_stream.h"
#include "run/run_graph.h"
#include "run/run_plan.h"
#include "run/run_state.h"

namespace backplane {

class Runner {
 public:
  // All four arguments must outlive the runner.
  Runner(const CompiledModel& model, const RunGraph& graph, RunState& state, const RunPlan& plan);

  // Allocates nothing unless a step is dynamic.
  Status run(const bp_run_t& options);
  // Puts a run into the framework's stream. BP_UNSUPPORTED if a part of the run cannot be in a stream.
  Status enqueue_in(FrameworkStream& stream, const bp_run_t& order);
  // The island (or BP_NONE) and the device (or null) in which the last run failed.
  uint32_t failed_step() const { return failed_step_; }
  const Device* failed_device() const { return failed_device_; }
  // Whether a call into a device did not return: graph, state and plan must then be kept forever, and never used again.
  bool abandoned() const { return abandoned_; }

 private:
  // A task that was started, or a copy after all tasks; also `self` of the callbacks in bp_run_t.
  struct Call {
    Runner* runner = nullptr;
    uint32_t task = BP_NONE;   // BP_NONE: a copy after all tasks
    Device* device = nullptr;  // null: the host copies
    bp_run_t run{};
    std::vector<bp_point_t> waits, signals;  // marks
    uint64_t begin = 0;                      // for the trace
    bool pending = false;                    // whether it will report its end
    bool unreported = false;                 // it is in a stream, and a later call reports its end
    std::atomic<uint32_t> ended{0};
    Status status;
  };

  Status fits(const FrameworkStream& stream) const;
  Status put(const Task& task, const bp_run_t& run, bp_status_t& out_code);
  bool needs_stream(const Task& task) const;  // whether the task puts anything into the stream
  Status run_in_order();
  Status run_at_once();
  TaskGraph::Started start(uint32_t task);
  TaskGraph::Started start_step(Call& call, uint32_t step);
  TaskGraph::Started start_copy(Call& call, const Transfer& transfer);
  bool uses_stream(uint32_t task) const;
  void order(Call& call, bool in_stream, bool reports);
  bool wait_for(Call& call);
  void poll_cancel();
  bool must_abandon() const;
  bool is_stuck(const Call& call) const;
  Status abandon();
  Call* call_of(uint64_t run);
  bool drain();
  Status transfer(const Transfer& transfer, const bp_run_t* in_stream);
  Status pass_through(const PassthroughOutput& output);
  Status copy_at_end(const Memory& from_memory, const bp_buffer_t& from, const Memory& to_memory, const bp_buffer_t& to,
                     uint64_t bytes);
  Status leave(FrameworkStream& stream, uint64_t deadline, Status status);
  void end_call(Call& call, Status status);
  void fail(Status status, uint32_t step, const Device* device);
  void span(uint32_t kind, uint64_t begin, const Device* device, uint64_t bytes, std::string_view name) const;
  bp_status_t output(const Step& step, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                     bp_tensor_t* out);

  static bp_status_t BP_CALL on_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                                       bp_tensor_t* out);
  static void BP_CALL on_done(void* self, bp_status_t status, const bp_error_t* error);

  const CompiledModel& model_;
  const RunGraph& graph_;
  RunState& state_;
  const RunPlan& plan_;
  Trace& trace_;
  std::vector<Call> calls_;                    // by task, and one for copies at the end
  const bp_cancel_t* cancel_token_ = nullptr;  // the framework's
  uint64_t deadline_ = 0, trace_id_ = 0;
  int32_t priority_ = 0;
  std::atomic<bool> some_pending_{false};  // whether calls of this run or work in streams may not have ended
  uint64_t first_id_ = 0;                  // of the run's tasks: bp_run_t.id is this and the task's number
  uint64_t mark_ = 0;                      // the value of all marks in this run
  bool at_once_ = false;
  bool bounded_ = false;  // by a deadline or a cancel token: then few tasks of a chain are in streams at a time
  bp_cancel_t cancel_;    // for calls that block: follows the framework's, and is set when a task of the run fails
  bp_cancel_t cancel_pending_;  // for calls that return before they end: set once the framework's is; outlives that one
  std::mutex mutex_;
  std::condition_variable changed_;  // a call ended
  Status failure_;
  std::atomic<bool> failed_{false};
  uint32_t failed_step_ = BP_NONE;
  const Device* failed_device_ = nullptr;
  std::atomic<bool> abandoned_{false};
  // What copies at the end use; members, as a device that was given up may use it for good.
  Block between_;
  std::shared_ptr<const model::Weight> passed_;
};

}  // namespace backplane
