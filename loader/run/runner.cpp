// SPDX-License-Identifier: Apache-2.0
#include "run/runner.h"

#include <algorithm>
#include <cstring>

#include "abi.h"
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

}  // namespace

Runner::Runner(const Session& session, Route& route, Plan& plan)
    : session_(session), route_(route), plan_(plan), calls_(route.steps.size()) {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    calls_[i].runner = this;
    calls_[i].step = i;
  }
}

Status Runner::run(const bp_run_t& options) {
  options_ = &options;
  failure_ = {};
  failed_step_ = BP_NONE;
  failed_device_ = nullptr;
  TaskGraph& tasks = plan_.tasks();
  at_once_ = !tasks.is_chain();
  if (at_once_) {
    cancel_.follow(options.cancel);
    tasks.run([this](uint32_t task) { return start(task); });
  } else {
    for (uint32_t task = 0; task < route_.tasks.size(); ++task)
      if (start(task) == Started::kFailed) break;
  }
  if (!failure_.ok()) return std::move(failure_);
  for (const Duplicate& d : route_.duplicates) BP_TRY(duplicate(d));
  return {};
}

void Runner::fail(Status status, uint32_t step, Device* device) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;  // what follows from the first is not told
  failure_ = std::move(status);
  failed_step_ = step;
  failed_device_ = device;
  if (at_once_) cancel_.set();
}

Started Runner::start(uint32_t number) {
  const Task& task = route_.tasks[number];
  if (cancelled(options_->cancel)) {
    fail({BP_CANCELLED, "the run was cancelled"}, BP_NONE, nullptr);
    return Started::kFailed;
  }
  if (passed(options_->deadline)) {
    fail({BP_TIMED_OUT, "the deadline passed"}, BP_NONE, nullptr);
    return Started::kFailed;
  }
  if (task.step != BP_NONE) return start_step(task.step);
  const Transfer& moving = route_.transfers[task.transfer];
  Status status = transfer(moving);
  if (status.ok()) return Started::kEnded;
  const std::vector<Replica>& replicas = route_.edges[moving.edge].replicas;
  Device* to = route_.memories[replicas[moving.to].memory]->device();
  fail(std::move(status), BP_NONE, to ? to : route_.memories[replicas[moving.from].memory]->device());
  return Started::kFailed;
}

// ---- islands --------------------------------------------------------------------------------------------------------

Started Runner::start_step(uint32_t index) {
  Step& step = route_.steps[index];
  Call& call = calls_[index];
  const Program& program = *step.program;
  if (step.late) {
    if (Status status = plan_.settle(step); !status.ok()) {
      fail(std::move(status), index, program.device);
      return Started::kFailed;
    }
  }
  const bool synchronous = program.device->info().flags & BP_DEVICE_SYNCHRONOUS;
  call.run.size = sizeof call.run;
  call.run.deadline = options_->deadline;
  call.run.cancel = at_once_ ? &cancel_ : options_->cancel;
  call.run.priority = options_->priority;
  call.run.trace_id = options_->trace_id;
  call.run.self = &call;
  call.run.output = on_output;
  call.run.done = synchronous ? nullptr : on_done;
  call.status = {};
  call.ended.store(0, std::memory_order_relaxed);
  call.begin = session_.environment().services().trace().active() ? monotonic_now() : 0;

  PluginError error;
  const bp_status_t code = program.plugin->instance->run(step.instance, &call.run, error.get());
  Status status = device_status(*program.device, error, code);
  if (synchronous || !status.ok()) {
    end_step(call, std::move(status));
    return call.status.ok() ? Started::kEnded : Started::kFailed;
  }
  if (at_once_) return Started::kGoesOn;
  while (!call.ended.load(std::memory_order_acquire)) call.ended.wait(0);
  return call.status.ok() ? Started::kEnded : Started::kFailed;
}

void Runner::end_step(Call& call, Status status) {
  if (call.begin)
    span(BP_SPAN_COMPUTE, call.begin, route_.steps[call.step].program->device, 0,
         "island " + std::to_string(call.step));
  if (status.ok()) return;
  const Program& program = *route_.steps[call.step].program;
  std::string label = label_of(session_.model().graph, status.node());
  if (label.empty()) {
    const model::Node& first = session_.model().graph.nodes[program.view->graph_nodes(0).first];
    label = "island " + std::to_string(call.step) + " (" + std::to_string(program.view->abi()->node_count) +
            " nodes from " + first.label() + ")";
  }
  status = std::move(status).context(label);
  call.status = status;
  fail(std::move(status), call.step, program.device);
}

void Runner::on_done(void* self, bp_status_t code, const bp_error_t* error) {
  Call& call = *static_cast<Call*>(self);
  Runner& runner = *call.runner;
  const Step& step = runner.route_.steps[call.step];
  Status status;
  if (code != BP_OK) {
    const bool has_detail = error && error->size >= BP_SIZE_1_0(bp_error_t) && error->text && error->text_size;
    status = Status(code, has_detail ? std::string(error->text, std::min(error->text_size, error->text_capacity))
                                     : "it failed without a text");
    if (has_detail)
      status = std::move(status).with_node(error->node).with_vendor_code(error->vendor_code).with_flags(error->flags);
    status = std::move(status).context("device '" + step.program->device->name() + "'");
  }
  runner.end_step(call, std::move(status));
  if (runner.at_once_) return runner.plan_.tasks().end(step.task, !call.status.ok());
  call.ended.store(1, std::memory_order_release);
  call.ended.notify_one();
}

bp_status_t Runner::on_output(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                              bp_tensor_t* out) {
  Call& call = *static_cast<Call*>(self);
  return call.runner->output(call.runner->route_.steps[call.step], slot, rank, extents, bytes, out);
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

Status Runner::transfer(const Transfer& transfer) {
  Edge& edge = route_.edges[transfer.edge];
  const std::string& name = session_.model().graph.values[edge.value].name;
  const Replica& from = edge.replicas[transfer.from];
  Replica& to = edge.replicas[transfer.to];
  const Memory &from_memory = *route_.memories[from.memory], &to_memory = *route_.memories[to.memory];
  const uint64_t begin = session_.environment().services().trace().active() ? monotonic_now() : 0;
  const Device* device = to_memory.device() ? to_memory.device() : from_memory.device();
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
  else if (Status status = copy(from_memory, from.buffer, to_memory, to.buffer, edge.bytes); !status.ok())
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
  span.trace_id = options_->trace_id;
  span.node = BP_NO_NODE;
  span.bytes = bytes;
  span.device = device ? device->index() : 0;
  span.name = abi::text(name);
  session_.environment().services().trace().add(span);
}

}  // namespace backplane
