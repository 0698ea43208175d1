// SPDX-License-Identifier: Apache-2.0
#include "run/runner.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/abi.h"
#include "base/clock.h"
#include "base/counted.h"
#include "run/device_status.h"

namespace backplane {
namespace {

using Started = TaskGraph::Started;

Status did_not_return(bool late, const std::string& devices) {
  return Status(late ? BP_TIMED_OUT : BP_DEVICE_LOST,
                (late ? "the deadline passed, and device " : "device ") + devices +
                    " did not return: its run was abandoned, and the bound memory must stay allocated")
      .with_flags(BP_ERROR_ABANDONED);
}

// Most drivers cannot stop work that is in a stream. A bounded run (one with a deadline or a cancel token) therefore
// has at most kAhead unfinished tasks in streams, and only islands of at most kMostNodes nodes. Larger islands, and all
// islands if tasks may run at once, run outside of streams, where backends check between kernels whether to stop.
constexpr uint32_t kAhead = 4;
constexpr uint32_t kMostNodes = 4;

// How often a waiting run checks for cancellation and for devices that were abandoned.
std::chrono::milliseconds slice(bool bounded) {
  return std::chrono::milliseconds(bounded ? 2 : 20);
}

}  // namespace

Runner::Runner(const CompiledModel& model, const RunGraph& graph, RunState& state, const RunPlan& plan)
    : model_(model),
      graph_(graph),
      state_(state),
      plan_(plan),
      trace_(model.environment().services().trace()),
      grace_ns_(static_cast<uint64_t>(std::chrono::nanoseconds(model.environment().abandon_after()).count())),
      calls_(graph.tasks.size() + 1) {
  for (Call& call : calls_) {
    call.runner = this;
    call.run.size = sizeof call.run;
    call.run.self = &call;
  }
  for (uint32_t i = 0; i < graph.tasks.size(); ++i) {
    calls_[i].task = i;
    const Task& task = graph.tasks[i];
    calls_[i].device =
        task.step != BP_NONE ? graph.steps[task.step].program->device : graph.copier_of(graph.transfers[task.transfer]);
    if (task.step != BP_NONE) calls_[i].run.output = on_output;
  }
}

Status Runner::run(const bp_run_t& options) {
  cancel_token_ = options.cancel;
  deadline_ = options.deadline;
  priority_ = options.priority;
  trace_id_ = options.trace_id;
  failure_ = {};
  thrown_ = nullptr;
  failed_ = false;
  failed_step_ = BP_NONE;
  failed_device_ = nullptr;
  at_once_ = !plan_.tasks().is_chain();
  bounded_ = options.cancel || options.deadline;
  if (!graph_.lanes.empty()) {
    first_id_ = new_run_ids(calls_.size());
    ++mark_;
  }
  if (some_pending_.load(std::memory_order_relaxed)) {
    some_pending_.store(false, std::memory_order_relaxed);
    for (Call& call : calls_) call.pending = call.unreported = false;
  }
  if (at_once_) cancel_.follow(options.cancel);
  if (bounded_) cancel_pending_.follow(nullptr);
  BP_TRY(at_once_ ? run_at_once() : run_in_order());
  BP_TRY(take_failure());
  for (const PassthroughOutput& output : graph_.passthroughs) BP_TRY(pass_through(output));
  return {};
}

Status Runner::run_at_once() {
  TaskGraph& tasks = plan_.tasks();
  const auto start_task = [this](uint32_t task) { return start(task); };
  const TaskGraph::Watch watch{[this] { poll_cancel(); }, [this] { return must_abandon(); }, slice(bounded_), bounded_};
  return tasks.run(start_task, watch) && drain() ? Status() : abandon();
}

Status Runner::run_in_order() {
  bool ends = true;
  for (uint32_t task = 0; task < graph_.tasks.size() && ends; ++task) {
    for (uint32_t before : plan_.issue(task).host_before)
      if (!wait_for(calls_[before])) return abandon();
    const bool alone = bounded_ && plan_.issue(task).in_stream && !uses_stream(task);
    for (uint32_t before = task - std::min(task, kAhead); alone && before < task; ++before)
      if (!wait_for(calls_[before])) return abandon();
    ends = !failed_.load(std::memory_order_relaxed) && start(task) != Started::kFailed;
    if (bounded_ && (alone || task >= kAhead) && !wait_for(calls_[alone ? task : task - kAhead])) return abandon();
  }
  if (!some_pending_) return {};
  for (Call& call : calls_)
    if (!wait_for(call)) return abandon();
  return drain() ? Status() : abandon();
}

bool Runner::uses_stream(uint32_t task) const {
  if (!plan_.issue(task).in_stream || !bounded_) return plan_.issue(task).in_stream;
  const uint32_t step = graph_.tasks[task].step;
  // A copy stays in its stream: elsewhere it would block and could not be abandoned.
  return step == BP_NONE || (!at_once_ && graph_.steps[step].program->view->abi()->node_count <= kMostNodes);
}

// Waits for the call to end. Returns false if it has not ended and the run must be abandoned.
bool Runner::wait_for(Call& call) {
  if (!call.pending) return true;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, slice(bounded_), [&] { return call.ended.load(std::memory_order_acquire) != 0; })) {
    poll_cancel();
    if (must_abandon()) return false;
  }
  return true;
}

// Setting the framework's token wakes no waiting thread, so the token is polled.
void Runner::poll_cancel() {
  if (cancelled(cancel_token_)) cancel_pending_.set();
}

// Whether the end of the call will never be reported, because its device was abandoned.
bool Runner::is_stuck(const Call& call) const {
  return (call.unreported || (call.pending && !call.ended.load(std::memory_order_acquire))) && call.device->given_up();
}

uint64_t Runner::abandon_at(uint64_t deadline) const {
  return deadline && deadline < BP_FOREVER - grace_ns_ ? deadline + grace_ns_ : BP_FOREVER;
}

bool Runner::must_abandon() const {
  if (deadline_ && monotonic_now() >= abandon_at(deadline_)) return true;
  return std::ranges::any_of(calls_, [this](const Call& call) { return is_stuck(call); });
}

// Abandons the calls that have not ended, and their devices.
Status Runner::abandon() {
  const auto is_under_way = [](const Call& call) {
    return call.pending && !call.ended.load(std::memory_order_acquire);
  };
  const bool late = deadline_ && monotonic_now() >= abandon_at(deadline_);
  if (!late) {  // a device was abandoned: calls on other devices may wait for it and must end too
    cancel_.set();
    cancel_pending_.set();
    const uint64_t end = std::min(abandon_at(deadline_), monotonic_now() + grace_ns_);
    const auto ends = [&](const Call& call) { return is_under_way(call) && !call.device->given_up(); };
    while (std::ranges::any_of(calls_, ends) && monotonic_now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (Call& call : calls_) {
    if (!is_under_way(call) && !is_stuck(call)) continue;
    abandoned_ = true;
    call.device->give_up();
  }
  if (!abandoned_) {  // meanwhile all calls have ended
    if (at_once_) plan_.tasks().wait();
    if (Status failure = take_failure(); !failure.ok()) return failure;
    const auto lost = std::ranges::find_if(graph_.devices, &Device::given_up);
    if (!late && lost != graph_.devices.end()) return (*lost)->lost();
    return {BP_TIMED_OUT, "the run's deadline passed before the run ended"};
  }
  try {
    std::string names;
    for (const Device* device : graph_.devices)
      if (device->given_up()) names += (names.empty() ? "'" : ", '") + device->name() + "'";
    return did_not_return(late, names);
  } catch (const std::bad_alloc&) {  // the framework must learn that the memory is still in use
    return std::move(late ? abandoned_late_ : abandoned_lost_);
  }
}

// After a failure, waits for work in streams that was started without `done`. Returns false if the run must be
// abandoned.
bool Runner::drain() {
  if (!failed_ || bounded_) return true;
  return std::ranges::all_of(state_.lanes(), [this](const Lane& lane) { return drain(lane); });
}

bool Runner::drain(const Lane& lane) noexcept {
  constexpr int kMostTries = 16;
  for (int tries = 0; tries < kMostTries; ++tries) {
    try {
      StreamEnd end = lane.wait();
      if (!end.ended && must_abandon()) return false;
      if (end.status.ok()) return true;
      if (Call* failed = call_of(end.run))
        end_call(*failed, std::move(end.status));
      else
        fail(std::move(end.status), BP_NONE, &lane.device());
      return true;
    } catch (...) {  // no memory for the text of an error, so it is not known whether the work has ended
      fail(std::current_exception());
    }
  }
  lane.device().give_up();
  return false;
}

void Runner::fail(Status status, uint32_t step, const Device* device) {
  const std::lock_guard lock(mutex_);
  // Keeps the first failure. Exception: a real cause replaces an earlier BP_DEPENDENCY_FAILED.
  if (!failure_.ok() && (failure_.code() != BP_DEPENDENCY_FAILED || status.code() == BP_DEPENDENCY_FAILED)) return;
  failure_ = std::move(status);
  failed_step_ = step;
  failed_device_ = device;
  stop();
}

// Keeps the first exception of a task, such as std::bad_alloc. Tasks run on threads of oneTBB, and threads of plugins
// report their ends. No exception may reach these threads, so `run` rethrows it once no task is running.
void Runner::fail(std::exception_ptr thrown) noexcept {
  const std::lock_guard lock(mutex_);
  if (!thrown_) thrown_ = std::move(thrown);
  stop();
}

Status Runner::take_failure() {
  if (failure_.ok() && thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return std::move(failure_);
}

void Runner::stop() noexcept {
  failed_ = true;
  if (at_once_) cancel_.set();
  if (bounded_) cancel_pending_.set();
}

// Returns the call with this bp_run_t.id, or null. A task may report the failure of an earlier task in its stream.
Runner::Call* Runner::call_of(uint64_t run) {
  return run && run - first_id_ < calls_.size() ? &calls_[run - first_id_] : nullptr;
}

Started Runner::start(uint32_t number) noexcept {
  Call& call = calls_[number];
  try {
    return start(call);
  } catch (...) {  // the device will not report the call: it has refused or ended it
    call.pending = call.unreported = false;
    fail(std::current_exception());
    return Started::kFailed;
  }
}

Started Runner::start(Call& call) {
  const Task& task = graph_.tasks[call.task];
  if (cancelled(cancel_token_)) {
    fail({BP_CANCELLED, "the run was cancelled"}, BP_NONE, nullptr);
    return Started::kFailed;
  }
  if (passed(deadline_)) {
    fail({BP_TIMED_OUT, "the run's deadline passed before the run ended"}, BP_NONE, nullptr);
    return Started::kFailed;
  }
  if (call.device && call.device->given_up()) {
    fail(call.device->lost(), task.step, call.device);
    return Started::kFailed;
  }
  return task.step != BP_NONE ? start_step(call, task.step) : start_copy(call, graph_.transfers[task.transfer]);
}

// Fills in the plugin's bp_run_t. `in_stream` adds the stream and the marks; `reports` adds the callback for the call's
// end.
void Runner::order(Call& call, bool in_stream, bool reports) {
  const Task& task = graph_.tasks[call.task];
  const RunPlan::Issue& issue = plan_.issue(call.task);
  bp_run_t& run = call.run;
  run.id = in_stream ? first_id_ + call.task : 0;
  run.priority = priority_;
  run.trace_id = trace_id_;
  run.done = reports ? on_done : nullptr;
  run.stream = nullptr;
  run.wait_count = run.signal_count = 0;
  call.status = {};
  if (reports || in_stream) {
    call.ended.store(0, std::memory_order_relaxed);
    call.pending = reports;
    call.unreported = !reports;
    some_pending_.store(true, std::memory_order_relaxed);
  }
  call.begin = trace_.active() ? monotonic_now() : 0;
  if (!in_stream) return;
  const Lane& lane = state_.lane(task.lane);
  const uint64_t device = lane.device().id();
  run.stream = lane.stream();
  call.waits.clear();
  call.signals.clear();
  for (uint32_t before : issue.marked_before)
    if (uses_stream(before))  // a task outside of its stream signals no mark; the host has waited for it
      call.waits.push_back(bp_native_point(state_.mark(before)->of(task.lane), device, mark_));
  if (issue.marks) call.signals.push_back(bp_native_point(state_.mark(call.task)->own(), device, mark_));
  run.waits = call.waits.data();
  run.wait_count = static_cast<uint32_t>(call.waits.size());
  run.signals = call.signals.data();
  run.signal_count = static_cast<uint32_t>(call.signals.size());
}

// ---- in the framework's stream --------------------------------------------------------------------------------------

bool Runner::needs_stream(const Task& task) const {
  return !plan_.is_shared(task);
}

Status Runner::fits(const FrameworkStream& stream) const {
  const Device& device = stream.device();
  const auto here = [&] { return "device '" + device.name() + "', which owns the stream"; };
  const auto name_of = [&](uint32_t value) { return "'" + graph_.name_of(graph_.values[value]) + "'"; };
  for (const Task& task : graph_.tasks) {
    if (task.step != BP_NONE) {
      const Step& step = graph_.steps[task.step];
      if (step.program->device != &device)
        return {BP_UNSUPPORTED, "island " + std::to_string(task.step) + " runs on device '" +
                                    step.program->device->name() + "', not on " + here() + ": run without a stream"};
      if (plan_.is_dynamic_step(task.step) || step.program->info.shapes == BP_SHAPES_DATA_DEPENDENT)
        return {BP_UNSUPPORTED, "the extents of the outputs of island " + std::to_string(task.step) +
                                    " are known only during the run: run without a stream"};
      continue;
    }
    const Transfer& moving = graph_.transfers[task.transfer];
    if (plan_.is_dynamic_value(moving.value))
      return {BP_UNSUPPORTED,
              "the extents of value " + name_of(moving.value) + " are known only during the run: run without a stream"};
    if (graph_.copier_of(moving) != &device)
      return {BP_UNSUPPORTED, "value " + name_of(moving.value) + " is copied by the host or another device, not by " +
                                  here() + ": run without a stream"};
    const bool into_device = state_.replica({moving.value, moving.to}).imported;
    const Replica& imported = graph_.values[moving.value].replicas[into_device ? moving.to : moving.from];
    if (!needs_stream(task) && !graph_.memories[imported.memory]->coherent())
      return {BP_UNSUPPORTED, "value " + name_of(moving.value) +
                                  " is in host memory that has to be flushed for the device: bind device memory"};
  }
  if (!graph_.passthroughs.empty())
    return {BP_UNSUPPORTED, "output " + name_of(graph_.passthroughs.front().value) +
                                " is computed by no island and is copied outside of streams: run without a stream"};
  if (graph_.steps.empty())
    return {BP_UNSUPPORTED, "the session has no islands to put into a stream: run without a stream"};
  return {};
}

Status Runner::put(const Task& task, const bp_run_t& run, bp_status_t& out_code) {
  out_code = BP_OK;
  if (task.step == BP_NONE) return transfer(graph_.transfers[task.transfer], &run);
  const Program& program = *graph_.steps[task.step].program;
  if (program.device->given_up()) return program.device->lost();
  PluginError error;
  out_code = program.plugin->instance->run(state_.instance(task.step), &run, error.get());
  return device_status(*program.device, error, out_code);
}

Status Runner::enqueue_in(FrameworkStream& stream, const bp_run_t& order) {
  BP_TRY(fits(stream));
  BP_ASSIGN(DeviceRun own, DeviceRun::of(order));
  const auto does = [this](const Task& task) { return needs_stream(task); };
  const Task& first = *std::ranges::find_if(graph_.tasks, does);
  const Task& last = *std::find_if(graph_.tasks.rbegin(), graph_.tasks.rend(), does);
  for (const Task& task : graph_.tasks) {
    if (!needs_stream(task)) continue;
    bp_run_t run = own.run();
    if (&task != &first) run.wait_count = 0;
    if (&task != &last) {
      run.signal_count = 0;
      run.done = nullptr;
    }
    bp_status_t code = BP_OK;
    Status status = put(task, run, code);
    if (code == BP_BUSY) {  // the instance still executes the previous run: wait for that run
      StreamEnd end = stream.work_end(order.deadline ? order.deadline : BP_FOREVER, order.cancel);
      // The stream reports a failure only once, to this wait. If the failure is of this run, the run fails. A failure
      // of an earlier run is kept for the framework.
      if (end.ended && end.run != run.id) stream.runs().keep(std::exchange(end.status, {}));
      status = end.status.ok() ? put(task, run, code) : std::move(end.status);
    }
    if (&task == &last) status = own.passed(std::move(status));
    if (status.ok()) continue;
    return &task == &first ? std::move(status) : leave(stream, run.id, order.deadline, std::move(status));
  }
  return {};
}

// A failed run must leave no work in the stream, so this waits until that work has ended, or abandons the device.
Status Runner::leave(FrameworkStream& stream, uint64_t id, uint64_t deadline, Status status) {
  StreamEnd end = stream.work_end(abandon_at(deadline), nullptr);
  if (end.ended) {
    if (end.run != id) stream.runs().keep(std::move(end.status));
    return status;
  }
  stream.device().give_up();
  abandoned_ = true;
  const bool late = end.status.code() == BP_TIMED_OUT;
  try {
    return did_not_return(late, "'" + stream.device().name() + "'");
  } catch (const std::bad_alloc&) {
    return std::move(late ? abandoned_late_ : abandoned_lost_);
  }
}

Status Runner::clear(FrameworkStream& stream, uint64_t deadline) noexcept {
  const uint64_t until = abandon_at(deadline);
  while (!stream.device().given_up()) {
    try {
      if (stream.drain(until).ok()) return {};
      break;
    } catch (...) {  // no memory for the text of an error: if work failed, it has ended, and the next wait succeeds
      if (monotonic_now() >= until) break;
    }
  }
  const bool late = !stream.device().given_up();
  stream.device().give_up();
  abandoned_ = true;
  return std::move(late ? abandoned_late_ : abandoned_lost_);
}

// ---- islands --------------------------------------------------------------------------------------------------------

Started Runner::start_step(Call& call, uint32_t step) {
  const Program& program = *graph_.steps[step].program;
  if (plan_.is_dynamic_step(step)) {
    if (Status status = plan_.plan_dynamic_step(step); !status.ok()) {
      fail(std::move(status), step, program.device);
      return Started::kFailed;
    }
  }
  const RunPlan::Issue& issue = plan_.issue(call.task);
  const bool synchronous = program.device->info().flags & BP_DEVICE_SYNCHRONOUS;
  const bool in_stream = uses_stream(call.task);
  order(call, in_stream, !synchronous && (!in_stream || bounded_ || issue.reports));
  call.run.deadline = deadline_;
  if (synchronous)
    call.run.cancel = at_once_ ? &cancel_ : cancel_token_;
  else if (bounded_)
    call.run.cancel = &cancel_pending_;
  else
    call.run.cancel = at_once_ && !in_stream ? &cancel_ : nullptr;

  PluginError error;
  const bp_status_t code = program.plugin->instance->run(state_.instance(step), &call.run, error.get());
  if (Status status = device_status(*program.device, error, code); !status.ok() || synchronous) {
    call.pending = call.unreported = false;
    end_call(call, std::move(status));
    return call.status.ok() ? Started::kEnded : Started::kFailed;
  }
  return call.pending ? Started::kPending : Started::kEnded;
}

void Runner::end_call(Call& call, Status status) {
  const uint32_t index = call.task != BP_NONE ? graph_.tasks[call.task].step : BP_NONE;
  if (call.begin && index != BP_NONE)
    span(BP_SPAN_COMPUTE, call.begin, graph_.steps[index].program->device, 0, {"island ", std::to_string(index)});
  if (status.ok()) return;
  call.status = status;
  if (index == BP_NONE) return fail(std::move(status), BP_NONE, call.device);
  const Program& program = *graph_.steps[index].program;
  std::string label = label_of(*graph_.model, status.node());
  if (label.empty()) {
    const model::Node& first = graph_.model->nodes[program.view->graph_nodes(0).first];
    label = "island " + std::to_string(index) + " (" + counted(program.view->abi()->node_count, "node") + " from " +
            first.label() + ")";
  }
  fail(std::move(status).context(label), index, program.device);
}

void Runner::end_reported(Call& call, bp_status_t code, const bp_error_t* error) {
  Status status;
  if (code != BP_OK) {
    // The failed task may be an earlier one of the stream that has no `done`.
    Call* const earlier = call_of(error ? error->run : 0);
    Call& failed = earlier ? *earlier : call;
    status = Status::reported(code, error).context("device '" + failed.device->name() + "'");
    if (&failed != &call) {
      call.status = status;
      end_call(failed, std::move(status));
      status = {};
    }
  }
  end_call(call, std::move(status));
}

void Runner::on_done(void* self, bp_status_t code, const bp_error_t* error) {
  Call& call = *static_cast<Call*>(self);
  Runner& runner = *call.runner;
  if (call.ended.load(std::memory_order_acquire)) return;  // a faulty plugin has ended this call before
  try {
    runner.end_reported(call, code, error);
  } catch (...) {
    runner.fail(std::current_exception());
  }
  const bool has_failed = code != BP_OK;
  if (runner.at_once_ && call.task != BP_NONE) {
    call.ended.store(1, std::memory_order_release);
    return runner.plan_.tasks().end(call.task, has_failed);
  }
  // Notifies with the lock held, because the runner may be destroyed as soon as the call has ended.
  const std::lock_guard lock(runner.mutex_);
  call.ended.store(1, std::memory_order_release);
  runner.changed_.notify_one();
}

bp_status_t Runner::on_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                              bp_tensor_t* out) try {
  Call& call = *static_cast<Call*>(self);
  if (call.runner->abandoned_) return BP_CANCELLED;
  const RunGraph& graph = call.runner->graph_;
  return call.runner->output(graph.steps[graph.tasks[call.task].step], slot, rank, extents, bytes, out);
} catch (const std::bad_alloc&) {
  return BP_RESOURCE_EXHAUSTED;
}

bp_status_t Runner::output(const Step& step, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                           bp_tensor_t* out) {
  const uint32_t index = slot - BP_SLOT_OUTPUT;
  if (slot < BP_SLOT_OUTPUT || index >= step.outputs.size() || rank > BP_MAX_RANK || (rank && !extents) || !out)
    return BP_INVALID_ARGUMENT;
  const ReplicaRef& result = step.outputs[index];
  if (result.replica == BP_NONE) return BP_TYPE_MISMATCH;
  for (uint32_t i = 0; i < rank; ++i)
    if (extents[i] < 0) return BP_INVALID_ARGUMENT;
  if (const Status status = state_.set_result(result, {extents, rank}, bytes); !status.ok()) return status.code();
  return abi::write(state_.tensor(result), out, "out_tensor").code();
}

void Runner::span(uint32_t kind, uint64_t begin, const Device* device, uint64_t bytes,
                  std::initializer_list<std::string_view> name) const noexcept try {
  std::string text;
  for (const std::string_view part : name) text += part;
  bp_span_t span{};
  span.size = sizeof span;
  span.kind = kind;
  span.begin = begin;
  span.end = monotonic_now();
  span.trace_id = trace_id_;
  span.bytes = bytes;
  span.device = device ? device->id() : 0;
  span.name = abi::text(text);
  trace_.add(span);
} catch (const std::bad_alloc&) {  // the span is lost
}

}  // namespace backplane
