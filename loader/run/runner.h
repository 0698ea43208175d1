// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of a RunGraph in the order of its plan, and concurrently where the plan allows it. The members that
// copy are in copies.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
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

  // After the first run, a successful run makes no heap allocation unless a step is dynamic or a trace is recorded.
  // May throw std::bad_alloc. No task is running then, unless abandoned() returns true.
  Status run(const bp_run_t& options);
  // Puts a run into the framework's stream. BP_UNSUPPORTED if part of the run cannot be put into a stream.
  Status enqueue_in(FrameworkStream& stream, const bp_run_t& order);
  // After `enqueue_in` has thrown: waits until all work in the stream has ended. If some has not ended at
  // `abandon_at(deadline)`, abandons the device and returns the error of an abandoned run.
  Status clear(FrameworkStream& stream, uint64_t deadline) noexcept;
  // The island (or BP_NONE) and the device (or null) in which the last run failed.
  uint32_t failed_step() const { return failed_step_; }
  const Device* failed_device() const { return failed_device_; }
  // Whether a device was abandoned that may still have work of this runner. If so, this runner, its model, graph, state
  // and plan must be kept forever and never used again.
  bool abandoned() const { return abandoned_; }

 private:
  // A task that was started, or a copy after all tasks. It is also `self` of the callbacks in its bp_run_t.
  struct Call {
    Runner* runner = nullptr;
    uint32_t task = BP_NONE;   // BP_NONE: a copy after all tasks
    Device* device = nullptr;  // null: the host copies
    bp_run_t run{};
    std::vector<bp_point_t> waits, signals;  // marks (semaphores shared between lanes)
    uint64_t begin = 0;                      // start time, for the trace; 0: no trace
    bool pending = false;                    // its `done` callback will report its end
    bool unreported = false;  // put into a stream without `done`: has ended when a later call in the stream has
    std::atomic<uint32_t> ended{0};
    Status status;
  };

  Status fits(const FrameworkStream& stream) const;
  Status put(const Task& task, const bp_run_t& run, bp_status_t& out_code);
  uint32_t island_of(const Transfer& moving, const Device* device) const;
  bool needs_stream(const Task& task) const;  // false: a transfer that copies nothing, because memory is shared
  Status run_in_order();
  Status run_at_once();
  TaskGraph::Started start(uint32_t task) noexcept;
  TaskGraph::Started start(Call& call);
  TaskGraph::Started start_step(Call& call, uint32_t step);
  TaskGraph::Started start_copy(Call& call, const Transfer& transfer);
  bool uses_stream(uint32_t task) const;
  void order(Call& call, bool in_stream, bool reports);
  bool wait_for(Call& call);
  void poll_cancel();
  // The time at which a run with this deadline (0: none) is abandoned. BP_FOREVER: never.
  uint64_t abandon_at(uint64_t deadline) const;
  bool must_abandon() const;
  bool is_stuck(const Call& call) const;
  Status abandon();
  Call* call_of(uint64_t run);
  bool drain();
  bool drain(const Lane& lane) noexcept;
  Status transfer(const Transfer& transfer, const bp_run_t* in_stream);
  Status pass_through(const PassthroughOutput& output);
  Status copy_at_end(const Memory& from_memory, const bp_buffer_t& from, const Memory& to_memory, const bp_buffer_t& to,
                     uint64_t bytes);
  Status leave(FrameworkStream& stream, uint64_t id, uint64_t deadline, Status status);
  void end_reported(Call& call, bp_status_t code, const bp_error_t* error);
  void end_call(Call& call, Status status);
  void fail(Status status, uint32_t step, const Device* device);
  void fail(std::exception_ptr thrown) noexcept;
  Status take_failure();  // returns failure_; if that is OK, rethrows a task's exception
  void stop() noexcept;   // starts no more tasks
  // Adds a span to the trace, under the joined parts of `name`.
  void span(uint32_t kind, uint64_t begin, const Device* device, uint64_t bytes,
            std::initializer_list<std::string_view> name) const noexcept;
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
  const uint64_t grace_ns_;                    // Environment::abandon_after
  std::vector<Call> calls_;                    // by task; the last is for copies after all tasks
  const bp_cancel_t* cancel_token_ = nullptr;  // the framework's token
  uint64_t deadline_ = 0, trace_id_ = 0;
  int32_t priority_ = 0;
  std::atomic<bool> some_pending_{false};  // this run may have unfinished calls or work in streams
  uint64_t first_id_ = 0;                  // bp_run_t.id of task t is first_id_ + t
  uint64_t mark_ = 0;                      // the value to which all marks are set in this run
  bool at_once_ = false;
  bool bounded_ = false;  // the run has a deadline or a cancel token, so few tasks are in streams at a time
  bp_cancel_t cancel_;    // for calls that block: follows the framework's token, and is set when a task fails
  // For asynchronous calls, which may outlive the framework's token: set when that token is set or a task fails.
  bp_cancel_t cancel_pending_;
  std::mutex mutex_;
  std::condition_variable changed_;  // notified when a call ends
  Status failure_;
  std::exception_ptr thrown_;  // the first exception of a task; null: none
  std::atomic<bool> failed_{false};
  uint32_t failed_step_ = BP_NONE;
  const Device* failed_device_ = nullptr;
  std::atomic<bool> abandoned_{false};
  // The errors of an abandoned run, if there is no memory for a text.
  Status abandoned_late_ = Status(BP_TIMED_OUT, {}).with_flags(BP_ERROR_ABANDONED);
  Status abandoned_lost_ = Status(BP_DEVICE_LOST, {}).with_flags(BP_ERROR_ABANDONED);
  // Memory for copies after all tasks. Kept as members, because a device that was abandoned may use it indefinitely.
  Block between_;
  std::shared_ptr<const model::Weight> passed_;
};

}  // namespace backplane
