// SPDX-License-Identifier: Apache-2.0
#include "run/runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/abi.h"
#include "host/container.h"
#include "run/clock.h"
#include "run/device_status.h"

namespace backplane {
namespace {

using Started = TaskGraph::Started;

// Appends copies of everything in `from`.
Status copy_container(const bp_container_t& from, bp_container_t& to) {
  to.clear();
  for (uint64_t i = 0; i < from.count(); ++i) {
    bp_bytes_t key{};
    (void)from.key(i, &key);  // only maps have keys
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    if (from.tensor(i, &tensor).ok()) {
      BP_TRY(to.append(key, &tensor));
      continue;
    }
    bp_container_t *inner = nullptr, *copy = nullptr;
    BP_TRY(from.child(i, &inner));
    BP_TRY(to.append_child(key, &copy));
    BP_TRY(copy_container(*inner, *copy));
  }
  return {};
}

// The clock of deadlines, read only where there is one.
bool passed(uint64_t deadline) {
  return deadline && deadline <= monotonic_now();
}

// A device may be late with what its deadline ended by so much before it is given up.
constexpr uint64_t kGraceNs = 100'000'000;

uint64_t new_ids(size_t count) {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace

Runner::Runner(const Session& session, Route& route, Plan& plan)
    : session_(session), route_(route), plan_(plan), calls_(route.tasks.size()) {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    calls_[i].runner = this;
    calls_[i].task = i;
    calls_[i].run.size = sizeof calls_[i].run;
    calls_[i].run.self = &calls_[i];
    if (route.tasks[i].step != BP_NONE) calls_[i].run.output = on_output;
  }
}

Status Runner::run(const bp_run_t& options) {
  cancel_token_ = options.cancel;
  deadline_ = options.deadline;
  priority_ = options.priority;
  trace_id_ = options.trace_id;
  failure_ = {};
  failed_ = false;
  failed_step_ = BP_NONE;
  failed_device_ = nullptr;
  at_once_ = !plan_.tasks().is_chain();
  paced_ = options.cancel || options.deadline;
  if (!route_.lanes.empty()) {
    first_id_ = new_ids(calls_.size());
    ++mark_;
  }
  if (some_go_on_.load(std::memory_order_relaxed)) {
    some_go_on_.store(false, std::memory_order_relaxed);
    for (Call& call : calls_) call.goes_on = false;
  }
  if (at_once_) cancel_.follow(options.cancel);
  if (paced_) cancel_going_.follow(nullptr);
  BP_TRY(at_once_ ? run_at_once() : run_in_order());
  if (!failure_.ok()) return std::move(failure_);
  for (const Duplicate& d : route_.duplicates) BP_TRY(duplicate(d));
  return {};
}

Status Runner::run_at_once() {
  TaskGraph& tasks = plan_.tasks();
  const auto start_task = [this](uint32_t task) { return start(task); };
  if (!paced_) {
    tasks.run(start_task);
    drain();
    return {};
  }
  const TaskGraph::Watch watch{[this] { look(); }, deadline_ ? deadline_ + kGraceNs : 0};
  return tasks.run(start_task, &watch) ? Status() : give_up();
}

// One after the other on this thread.
Status Runner::run_in_order() {
  bool ends = true;
  for (uint32_t task = 0; task < calls_.size() && ends; ++task) {
    for (uint32_t before : plan_.issue(task).host_before)
      if (!wait_for(calls_[before])) return give_up();
    ends = !failed_.load(std::memory_order_relaxed) && start(task) != Started::kFailed;
    if (paced_ && !wait_for(calls_[task])) return give_up();
  }
  if (!some_go_on_) return {};
  for (Call& call : calls_)
    if (!wait_for(call)) return give_up();
  drain();
  return {};
}

// False where it has not ended and its device is to be given up.
bool Runner::wait_for(Call& call) {
  if (!call.goes_on) return true;
  if (!paced_) {
    while (!call.ended.load(std::memory_order_acquire)) call.ended.wait(0);
    return true;
  }
  constexpr auto kSlice = std::chrono::milliseconds(2);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kSlice, [&] { return call.ended.load(std::memory_order_acquire) != 0; })) {
    look();
    if (give_up_is_due()) return false;
  }
  return true;
}

// Those who set the framework's token wake nobody.
void Runner::look() {
  if (cancelled(cancel_token_)) cancel_going_.set();
}

bool Runner::give_up_is_due() const {
  return deadline_ && monotonic_now() >= deadline_ + kGraceNs;
}

// Calls that have not ended: their plugins hear of it, and nothing more is asked of their devices.
Status Runner::give_up() {
  std::string names;
  for (Call& call : calls_) {
    if (!call.goes_on || call.ended.load(std::memory_order_acquire)) continue;
    gave_up_ = true;
    Step& step = route_.steps[route_.tasks[call.task].step];
    Device& device = *step.program->device;
    const bp_instance_api_t& api = *step.program->plugin->instance;
    device.give_up();
    if (api.abandon) api.abandon(step.instance);
    names += (names.empty() ? "'" : ", '") + device.name() + "'";
  }
  if (!gave_up_) {  // the last one came just now
    if (at_once_) plan_.tasks().wait();
    return {BP_TIMED_OUT, "the deadline passed"};
  }
  return Status(BP_TIMED_OUT, "the deadline passed, and device " + names +
                                  " did not come back: it was given up, and what is bound must stay allocated")
      .with_flags(BP_ERROR_ABANDONED);
}

// After a failure streams may hold work whose end nobody was to report.
void Runner::drain() {
  if (!failed_ || paced_) return;
  for (const Lane& lane : route_.lanes) {
    PluginError error;
    const bp_status_t code = lane.wait(error);
    if (code == BP_OK) continue;
    Status status = Status::reported(code, error.get()).context("device '" + lane.device().name() + "'");
    if (Call* failed = call_of(error.get()))
      end_call(*failed, std::move(status));
    else
      fail(std::move(status), BP_NONE, &lane.device());
  }
}

void Runner::fail(Status status, uint32_t step, Device* device) {
  const std::lock_guard lock(mutex_);
  // What follows from the first is not told, but where it was heard of before its cause.
  if (!failure_.ok() && (failure_.code() != BP_DEPENDENCY_FAILED || status.code() == BP_DEPENDENCY_FAILED)) return;
  failure_ = std::move(status);
  failed_ = true;
  failed_step_ = step;
  failed_device_ = device;
  if (at_once_) cancel_.set();
  if (paced_) cancel_going_.set();
}

// The task whose failure is reported by another one of its stream, or null.
Runner::Call* Runner::call_of(const bp_error_t* error) {
  if (!error || !error->run || error->run - first_id_ >= calls_.size()) return nullptr;
  return &calls_[error->run - first_id_];
}

Started Runner::start(uint32_t number) {
  const Task& task = route_.tasks[number];
  Call& call = calls_[number];
  if (cancelled(cancel_token_)) {
    fail({BP_CANCELLED, "the run was cancelled"}, BP_NONE, nullptr);
    return Started::kFailed;
  }
  if (passed(deadline_)) {
    fail({BP_TIMED_OUT, "the deadline passed"}, BP_NONE, nullptr);
    return Started::kFailed;
  }
  return task.step != BP_NONE ? start_step(call, route_.steps[task.step])
                              : start_copy(call, route_.transfers[task.transfer]);
}

// What is asked of the plugin: the task's stream and marks, or its end alone.
void Runner::order(Call& call, bool in_stream, bool reports) {
  const Task& task = route_.tasks[call.task];
  const Plan::Issue& issue = plan_.issue(call.task);
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
    call.goes_on = reports;
    some_go_on_.store(true, std::memory_order_relaxed);
  }
  call.begin = session_.environment().services().trace().active() ? monotonic_now() : 0;
  if (!in_stream) return;
  const uint64_t device = route_.lanes[task.lane].device().id();
  run.stream = route_.lanes[task.lane].stream();
  call.waits.clear();
  call.signals.clear();
  for (uint32_t before : issue.marked_before)
    call.waits.push_back(bp_native_point(route_.tasks[before].mark->of(task.lane), device, mark_));
  if (issue.marks) call.signals.push_back(bp_native_point(task.mark->own(), device, mark_));
  run.waits = call.waits.data();
  run.wait_count = static_cast<uint32_t>(call.waits.size());
  run.signals = call.signals.data();
  run.signal_count = static_cast<uint32_t>(call.signals.size());
}

Started Runner::start_copy(Call& call, const Transfer& moving) {
  const Plan::Issue& issue = plan_.issue(call.task);
  const bool in_stream = issue.in_stream && !paced_;
  if (in_stream) order(call, true, issue.reports);
  Status status = transfer(moving, in_stream ? &call.run : nullptr);
  if (status.ok()) return call.goes_on ? Started::kGoesOn : Started::kEnded;
  call.goes_on = false;
  const std::vector<Replica>& replicas = route_.edges[moving.edge].replicas;
  fail(std::move(status), BP_NONE,
       copier(*route_.memories[replicas[moving.from].memory], *route_.memories[replicas[moving.to].memory]));
  return Started::kFailed;
}

// ---- in the framework's stream --------------------------------------------------------------------------------------

// Shared memory that needs no flush is neither copied nor waited for.
bool Runner::acts(const Task& task) const {
  if (task.step != BP_NONE) return true;
  const Transfer& moving = route_.transfers[task.transfer];
  const Edge& edge = route_.edges[moving.edge];
  return !edge.replicas[moving.from].shared && !edge.replicas[moving.to].shared;
}

Status Runner::fits(const FrameworkStream& stream) const {
  const Device& device = stream.device();
  const auto here = [&] { return "device '" + device.name() + "', of which the stream is"; };
  const auto name_of = [&](uint32_t edge) {
    return "'" + session_.model().graph.values[route_.edges[edge].value].name + "'";
  };
  for (const Task& task : route_.tasks) {
    if (task.step != BP_NONE) {
      const Step& step = route_.steps[task.step];
      if (step.program->device != &device)
        return {BP_UNSUPPORTED, "island " + std::to_string(task.step) + " runs on device '" +
                                    step.program->device->name() + "', not on " + here()};
      if (step.late || step.program->info.shapes == BP_SHAPES_DATA_DEPENDENT)
        return {BP_UNSUPPORTED,
                "island " + std::to_string(task.step) + ": the extents of its outputs are known only during the run"};
      continue;
    }
    const Transfer& moving = route_.transfers[task.transfer];
    const Edge& edge = route_.edges[moving.edge];
    const Replica &from = edge.replicas[moving.from], &to = edge.replicas[moving.to];
    const Memory &from_memory = *route_.memories[from.memory], &to_memory = *route_.memories[to.memory];
    if (edge.late || copier(from_memory, to_memory) != &device)
      return {BP_UNSUPPORTED, "value " + name_of(moving.edge) + " is not copied by " + here()};
    if (!acts(task) && !(to.shared ? to_memory : from_memory).coherent())
      return {BP_UNSUPPORTED, "value " + name_of(moving.edge) +
                                  " lies in host memory that has to be flushed for the device: bind memory of its own"};
  }
  if (!route_.duplicates.empty())
    return {BP_UNSUPPORTED,
            "output " + name_of(route_.duplicates.front().edge) + " is made by no island: the host copies it"};
  if (route_.steps.empty()) return {BP_UNSUPPORTED, "the session has no islands"};
  return {};
}

Status Runner::put(const Task& task, const bp_run_t& run, bp_status_t& out_code) {
  out_code = BP_OK;
  if (task.step == BP_NONE) return transfer(route_.transfers[task.transfer], &run);
  const Step& step = route_.steps[task.step];
  PluginError error;
  out_code = step.program->plugin->instance->run(step.instance, &run, error.get());
  return device_status(*step.program->device, error, out_code);
}

Status Runner::put_into(FrameworkStream& stream, const bp_run_t& order) {
  BP_TRY(fits(stream));
  BP_ASSIGN(const DeviceOrder own, DeviceOrder::of(order));
  const auto does = [this](const Task& task) { return acts(task); };
  const Task& first = *std::ranges::find_if(route_.tasks, does);
  const Task& last = *std::find_if(route_.tasks.rbegin(), route_.tasks.rend(), does);
  for (const Task& task : route_.tasks) {
    if (!acts(task)) continue;
    bp_run_t run = own.run();
    if (&task != &first) run.wait_count = 0;
    if (&task != &last) {
      run.signal_count = 0;
      run.done = nullptr;
    }
    bp_status_t code = BP_OK;
    Status status = put(task, run, code);
    if (code == BP_BUSY) {  // an instance that runs once at a time: the run before has to end
      stream.settle();
      status = put(task, run, code);
    }
    if (status.ok()) continue;
    if (&task != &first) stream.settle();  // a call that fails leaves nothing behind
    return status;
  }
  return {};
}

// ---- islands --------------------------------------------------------------------------------------------------------

Started Runner::start_step(Call& call, Step& step) {
  const Program& program = *step.program;
  if (step.late) {
    if (Status status = plan_.settle(step); !status.ok()) {
      fail(std::move(status), route_.tasks[call.task].step, program.device);
      return Started::kFailed;
    }
  }
  const Plan::Issue& issue = plan_.issue(call.task);
  const bool synchronous = program.device->info().flags & BP_DEVICE_SYNCHRONOUS;
  const bool in_stream = issue.in_stream && !paced_;
  order(call, in_stream, !synchronous && (!in_stream || issue.reports));
  call.run.deadline = deadline_;
  if (synchronous)
    call.run.cancel = at_once_ ? &cancel_ : cancel_token_;
  else if (paced_)
    call.run.cancel = &cancel_going_;
  else
    call.run.cancel = at_once_ && !in_stream ? &cancel_ : nullptr;

  PluginError error;
  const bp_status_t code = program.plugin->instance->run(step.instance, &call.run, error.get());
  if (Status status = device_status(*program.device, error, code); !status.ok() || synchronous) {
    call.goes_on = false;
    end_call(call, std::move(status));
    return call.status.ok() ? Started::kEnded : Started::kFailed;
  }
  return call.goes_on ? Started::kGoesOn : Started::kEnded;
}

void Runner::end_call(Call& call, Status status) {
  const uint32_t index = route_.tasks[call.task].step;
  if (call.begin && index != BP_NONE)
    span(BP_SPAN_COMPUTE, call.begin, route_.steps[index].program->device, 0, "island " + std::to_string(index));
  if (status.ok()) return;
  call.status = status;
  if (index == BP_NONE) {
    const Lane& lane = route_.lanes[route_.tasks[call.task].lane];
    return fail(std::move(status), BP_NONE, &lane.device());
  }
  const Program& program = *route_.steps[index].program;
  std::string label = label_of(session_.model().graph, status.node());
  if (label.empty()) {
    const model::Node& first = session_.model().graph.nodes[program.view->graph_nodes(0).first];
    label = "island " + std::to_string(index) + " (" + std::to_string(program.view->abi()->node_count) +
            " nodes from " + first.label() + ")";
  }
  fail(std::move(status).context(label), index, program.device);
}

void Runner::on_done(void* self, bp_status_t code, const bp_error_t* error) {
  Call& call = *static_cast<Call*>(self);
  Runner& runner = *call.runner;
  Status status;
  if (code != BP_OK) {
    Call* const earlier = runner.call_of(error);  // of the stream, without a `done` of its own
    Call& failed = earlier ? *earlier : call;
    const Task& task = runner.route_.tasks[failed.task];
    const Device& device = task.step != BP_NONE ? *runner.route_.steps[task.step].program->device
                                                : runner.route_.lanes[task.lane].device();
    status = Status::reported(code, error).context("device '" + device.name() + "'");
    if (&failed != &call) {
      call.status = status;
      runner.end_call(failed, std::move(status));
      status = {};
    }
  }
  runner.end_call(call, std::move(status));
  const bool has_failed = code != BP_OK;
  if (runner.at_once_) {
    call.ended.store(1, std::memory_order_release);
    return runner.plan_.tasks().end(call.task, has_failed);
  }
  if (runner.paced_) {
    const std::lock_guard lock(runner.mutex_);
    call.ended.store(1, std::memory_order_release);
    runner.changed_.notify_one();
    return;
  }
  call.ended.store(1, std::memory_order_release);
  call.ended.notify_one();
}

bp_status_t Runner::on_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                              bp_tensor_t* out) {
  Call& call = *static_cast<Call*>(self);
  if (call.runner->gave_up_) return BP_CANCELLED;
  Route& route = call.runner->route_;
  return call.runner->output(route.steps[route.tasks[call.task].step], slot, rank, extents, bytes, out);
}

bp_status_t Runner::output(Step& step, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                           bp_tensor_t* out) {
  const uint32_t index = slot - BP_SLOT_OUTPUT;
  if (slot < BP_SLOT_OUTPUT || index >= step.outputs.size() || rank > BP_MAX_RANK || (rank && !extents) || !out)
    return BP_INVALID_ARGUMENT;
  const Place& place = step.outputs[index];
  Edge& edge = route_.edges[place.edge];
  if (place.replica == BP_NONE) return BP_TYPE_MISMATCH;
  for (uint32_t i = 0; i < rank; ++i)
    if (extents[i] < 0) return BP_INVALID_ARGUMENT;
  edge.extents.assign(extents, extents + rank);
  edge.bytes = edge.dtype == BP_DTYPE_STRING ? bytes : dense_bytes(edge.dtype, rank, extents);
  if (edge.bytes == UINT64_MAX) return BP_RESOURCE_EXHAUSTED;
  Replica& replica = edge.replicas[place.replica];
  if (replica.user) {
    if (edge.bytes > replica.buffer.bytes) return BP_BUFFER_TOO_SMALL;
  } else if (Status status = plan_.give_buffer(edge, replica); !status.ok()) {
    return status.code();
  }
  edge.known = true;
  return abi::write(edge.tensor(place.replica), out, "out_tensor").code();
}

// ---- values on their way --------------------------------------------------------------------------------------------

// In a stream it returns when the copy was put there.
Status Runner::transfer(const Transfer& transfer, const bp_run_t* in_stream) {
  Edge& edge = route_.edges[transfer.edge];
  const std::string& name = session_.model().graph.values[edge.value].name;
  const Replica& from = edge.replicas[transfer.from];
  Replica& to = edge.replicas[transfer.to];
  const Memory &from_memory = *route_.memories[from.memory], &to_memory = *route_.memories[to.memory];
  const uint64_t begin = session_.environment().services().trace().active() ? monotonic_now() : 0;
  const Device* device = copier(from_memory, to_memory);
  if (!edge.known) return {BP_INTERNAL, "value '" + name + "' was not written by its island"};
  // What the plan knew has its buffer; what only the run told gets one now.
  if (to.user && edge.bytes > to.buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, "output '" + name + "' needs " + std::to_string(edge.bytes) +
                                     " bytes, the bound buffer has " + std::to_string(to.buffer.bytes)};
  if (!to.user && edge.late) BP_TRY(plan_.give_buffer(edge, to));
  if (to.shared)
    BP_TRY(to_memory.flush(part(to.buffer, 0, edge.bytes), BP_MAP_WRITE));
  else if (from.shared)
    BP_TRY(from_memory.flush(part(from.buffer, 0, edge.bytes), BP_MAP_READ));
  else if (Status status = copy(from_memory, from.buffer, to_memory, to.buffer, edge.bytes, in_stream); !status.ok())
    return std::move(status).context("value '" + name + "'");
  if (!begin) return {};
  const bool shared = to.shared || from.shared;
  span(BP_SPAN_COPY, begin, device, shared ? 0 : edge.bytes, (shared ? "shared '" : "copy '") + name + "'");
  return {};
}

Status Runner::duplicate(const Duplicate& duplicate) {
  Edge& to = route_.edges[duplicate.edge];
  const std::string& name = session_.model().graph.values[to.value].name;
  const Edge* from = duplicate.from_edge == BP_NONE ? nullptr : &route_.edges[duplicate.from_edge];
  if (to.kind != BP_KIND_TENSOR) {
    if (!from || !from->container) return {BP_INTERNAL, "a constant that is no tensor cannot be output '" + name + "'"};
    return copy_container(*from->container, *to.container);
  }
  const std::shared_ptr<const model::Weight> weight = from ? nullptr : session_.weight_of(to.value);
  to.extents = weight ? weight->dims : from->extents;
  to.bytes = weight ? weight->bytes : from->bytes;
  to.dtype = weight ? weight->dtype : from->dtype;
  Replica& home = to.replicas[to.home];
  if (!home.user) BP_TRY(plan_.give_buffer(to, home));
  if (to.bytes > home.buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, "output '" + name + "' needs " + std::to_string(to.bytes) +
                                     " bytes, the bound buffer has " + std::to_string(home.buffer.bytes)};
  bp_buffer_t bytes{};
  bytes.address = weight ? const_cast<void*>(weight->data) : nullptr;
  bytes.bytes = to.bytes;
  if (weight) return copy(*route_.memories[0], bytes, *route_.memories[home.memory], home.buffer, to.bytes);
  const Replica& source = from->replicas[from->home == BP_NONE ? 0 : from->home];
  const Memory &from_memory = *route_.memories[source.memory], &to_memory = *route_.memories[home.memory];
  if (direct(from_memory, to_memory)) return copy(from_memory, source.buffer, to_memory, home.buffer, to.bytes);
  Block between;
  BP_TRY(between.reserve(*route_.memories[0], to.bytes));
  BP_TRY(copy(from_memory, source.buffer, *route_.memories[0], between.buffer(), to.bytes));
  return copy(*route_.memories[0], between.buffer(), to_memory, home.buffer, to.bytes);
}

void Runner::span(uint32_t kind, uint64_t begin, const Device* device, uint64_t bytes, std::string_view name) const {
  bp_span_t span{};
  span.size = sizeof span;
  span.kind = kind;
  span.begin = begin;
  span.end = monotonic_now();
  span.trace_id = trace_id_;
  span.bytes = bytes;
  span.device = device ? device->id() : 0;
  span.name = abi::text(name);
  session_.environment().services().trace().add(span);
}

}  // namespace backplane
