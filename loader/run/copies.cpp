// SPDX-License-Identifier: Apache-2.0
// The copies of a run: tasks, and outputs that no island writes.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "host/container.h"
#include "run/runner.h"

namespace backplane {

TaskGraph::Started Runner::start_copy(Call& call, const Transfer& moving) {
  const RunPlan::Issue& issue = plan_.issue(call.task);
  const bool copies_nothing = plan_.is_dynamic_value(moving.value) && plan_.uses_host({moving.value, moving.to});
  const bool in_stream = uses_stream(call.task) && !copies_nothing;
  if (in_stream) order(call, true, bounded_ || issue.reports);
  Status status = transfer(moving, in_stream ? &call.run : nullptr);
  if (status.ok()) return call.pending ? TaskGraph::Started::kPending : TaskGraph::Started::kEnded;
  call.pending = call.unreported = false;
  fail(std::move(status), island_of(moving, call.device), call.device);
  return TaskGraph::Started::kFailed;
}

// Returns an island on `device` that reads the copied value, or else the one that wrote it: if the copy fails, failover
// runs that island on another device. BP_NONE if there is none.
uint32_t Runner::island_of(const Transfer& moving, const Device* device) const {
  const RunValue& value = graph_.values[moving.value];
  std::vector<uint32_t> tasks = value.replicas[moving.to].readers;
  tasks.push_back(value.replicas[moving.from].writer);
  for (uint32_t task : tasks) {
    const uint32_t step = task != BP_NONE ? graph_.tasks[task].step : BP_NONE;
    if (step != BP_NONE && graph_.steps[step].program->device == device) return step;
  }
  return BP_NONE;
}

// With `in_stream`, returns as soon as the copy is in the stream.
Status Runner::transfer(const Transfer& transfer, const bp_run_t* in_stream) {
  const RunValue& value = graph_.values[transfer.value];
  const RunState::Value& state = state_.value(transfer.value);
  const std::string& name = graph_.name_of(value);
  const Memory& from_memory = *graph_.memories[value.replicas[transfer.from].memory];
  const Memory& to_memory = *graph_.memories[value.replicas[transfer.to].memory];
  const RunState::Buffer &from = state.replicas[transfer.from], &to = state.replicas[transfer.to];
  const uint64_t begin = trace_.active() ? monotonic_now() : 0;
  if (!state.known) return {BP_INTERNAL, "value '" + name + "' was not written by its island"};
  if (to.user && state.bytes > to.buffer.bytes)
    return {BP_BUFFER_TOO_SMALL, "output '" + name + "' needs " + std::to_string(state.bytes) +
                                     " bytes, but the bound buffer has " + std::to_string(to.buffer.bytes)};
  // Values with planned extents already have their buffers.
  if (const ReplicaRef ref{transfer.value, transfer.to}; !to.user && plan_.is_dynamic_value(ref.value))
    BP_TRY(plan_.uses_host(ref) ? state_.import_from_host(ref) : state_.allocate(ref));
  if (to.imported)
    BP_TRY(to_memory.flush(part(to.buffer, 0, state.bytes), BP_MAP_WRITE));
  else if (from.imported)
    BP_TRY(from_memory.flush(part(from.buffer, 0, state.bytes), BP_MAP_READ));
  else if (Status status = copy(from_memory, from.buffer, to_memory, to.buffer, state.bytes, in_stream); !status.ok())
    return std::move(status).context("value '" + name + "'");
  if (!begin) return {};
  const bool imported = to.imported || from.imported;
  span(BP_SPAN_COPY, begin, copier(from_memory, to_memory), imported ? 0 : state.bytes,
       {imported ? "shared '" : "copy '", name, "'"});
  return {};
}

Status Runner::pass_through(const PassthroughOutput& output) {
  const RunValue& value = graph_.values[output.value];
  const bool is_weight = output.source == BP_NONE;
  if (value.kind != BP_KIND_TENSOR) {
    const bp_container_t* const from = is_weight ? nullptr : state_.value(output.source).container;
    if (!from) return {BP_INTERNAL, "a constant that is not a tensor cannot be output '" + graph_.name_of(value) + "'"};
    return state_.value(output.value).container->assign(*from);
  }
  const ReplicaRef user_replica{output.value, value.user_replica};
  const auto [from_memory, to_memory] = graph_.memories_of(output);
  if (is_weight) {
    passed_ = model_.weight_of(value.value);
    const model::Weight& weight = *passed_;
    BP_TRY(state_.set_passthrough(output.value, weight.dtype, weight.dims, weight.bytes));
    bp_buffer_t bytes{};
    bytes.address = const_cast<void*>(weight.data);
    bytes.bytes = weight.bytes;
    BP_TRY(copy_at_end(from_memory, bytes, to_memory, state_.replica(user_replica).buffer, weight.bytes));
    passed_ = nullptr;
    return {};
  }
  const RunState::Value& from = state_.value(output.source);
  BP_TRY(state_.set_passthrough(output.value, from.dtype, from.extents, from.bytes));
  const RunValue& source = graph_.values[output.source];
  const uint32_t replica = source.user_replica == BP_NONE ? 0 : source.user_replica;
  const bp_buffer_t &read = from.replicas[replica].buffer, &written = state_.replica(user_replica).buffer;
  if (direct(from_memory, to_memory)) return copy_at_end(from_memory, read, to_memory, written, from.bytes);
  const Memory& host = *graph_.memories[0];
  BP_TRY(between_.reserve(host, from.bytes));
  BP_TRY(copy_at_end(from_memory, read, host, between_.buffer(), from.bytes));
  return copy_at_end(host, between_.buffer(), to_memory, written, from.bytes);
}

// Copies an output after all tasks have ended. Uses the stream of the copying device if there is one, because a wait
// for a stream can be abandoned.
Status Runner::copy_at_end(const Memory& from_memory, const bp_buffer_t& from, const Memory& to_memory,
                           const bp_buffer_t& to, uint64_t bytes) {
  if (cancelled(cancel_token_)) return {BP_CANCELLED, "the run was cancelled"};
  if (passed(deadline_)) return {BP_TIMED_OUT, "the run's deadline passed before all outputs were copied"};
  Device* const device = copier(from_memory, to_memory);
  const auto lane = std::ranges::find(state_.lanes(), device, [](const Lane& one) { return &one.device(); });
  if (lane == state_.lanes().end() || bytes == 0) return copy(from_memory, from, to_memory, to, bytes);
  Call& call = calls_.back();
  call.device = device;
  call.begin = 0;
  call.status = {};
  call.run.stream = lane->stream();
  call.run.id = first_id_ + calls_.size() - 1;
  call.run.priority = priority_;
  call.run.trace_id = trace_id_;
  call.run.done = on_done;
  call.ended.store(0, std::memory_order_relaxed);
  call.pending = true;
  some_pending_.store(true, std::memory_order_relaxed);
  if (Status status = copy(from_memory, from, to_memory, to, bytes, &call.run); !status.ok()) {
    call.pending = false;
    return status;
  }
  if (!wait_for(call)) return abandon();
  return take_failure();
}

}  // namespace backplane
