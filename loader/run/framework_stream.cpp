// SPDX-License-Identifier: Apache-2.0
#include "run/framework_stream.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <utility>

#include "base/abi.h"
#include "base/clock.h"
#include "host/cancel.h"
#include "run/device_status.h"

namespace backplane {
namespace {

Status lacks(const Device& device, const char* what) {
  return {BP_UNSUPPORTED, "device '" + device.name() + "' does not support " + what};
}

Status event_signals_it(const Device& device) {
  return {BP_UNSUPPORTED, "a semaphore of device '" + device.name() +
                              "' was imported from an event: only its event signals it, not a run or the host"};
}

}  // namespace

Result<std::shared_ptr<FrameworkStream>> FrameworkStream::create(std::shared_ptr<Environment> environment,
                                                                 Device& device, const bp_stream_create_t& how) {
  BP_ASSIGN(bp_device_t * handle, device.open());  // first, because this loads the backend if it is not loaded yet
  const bp_sync_api_t* api = device.backend().plugin->sync;
  if (!api || !api->stream_create || !api->stream_destroy || !api->stream_wait) return lacks(device, "streams");
  std::shared_ptr<FrameworkStream> stream(new FrameworkStream(std::move(environment), device));
  PluginError error;
  BP_TRY(device_status(device, error, api->stream_create(handle, &how, &stream->stream_, error.get())));
  if (!stream->stream_) return Status(BP_INTERNAL, "device '" + device.name() + "': stream_create returned no stream");
  return stream;
}

FrameworkStream::FrameworkStream(std::shared_ptr<Environment> environment, Device& device)
    : environment_(std::move(environment)),
      device_(&device),
      runs_(std::make_shared<StreamRuns>("device '" + device.name() + "'")) {
  device.listen(this, [runs = runs_](const Status& lost) { runs->give_up(lost); });
}

FrameworkStream::~FrameworkStream() {
  device_->unlisten(this);
  close();
}

void FrameworkStream::close() noexcept {
  if (!stream_) return;
  try {
    static_cast<void>(drain());
  } catch (...) {  // out of memory for an error message; the plugin's stream_destroy waits too
  }
  device_->given_up() ? keep_handle(stream_) : api().stream_destroy(stream_);
  stream_ = nullptr;
}

Status FrameworkStream::wait(uint64_t deadline) {
  StreamEnd end = work_end(deadline, nullptr);
  // Work is still running. Reporting an earlier failure here would suggest that all work has ended.
  if (!end.ended) {
    const bool is_abandoned = end.status.code() == BP_DEVICE_LOST && runs_->any_left();
    const uint32_t flags = end.status.flags() | (is_abandoned ? BP_ERROR_ABANDONED : 0);
    return std::move(end.status).with_flags(flags);
  }
  Status kept = runs_->take_failure();
  if (kept.ok()) return std::move(end.status);
  const uint32_t flags = kept.flags() | BP_ERROR_OF_RUN;
  return std::move(kept).with_flags(flags);  // the first failure; a later one is not reported
}

StreamEnd FrameworkStream::work_end(uint64_t deadline, const bp_cancel_t* cancel) const try {
  const uint64_t accepted = runs_->accepted();
  StreamEnd end = wait_for_work(*device_, stream_, deadline, cancel);
  if (end.ended) runs_->note_ended(accepted);
  return end;
} catch (...) {  // out of memory for the error message; the plugin reports a failure only once
  runs_->keep_unknown();
  throw;
}

Status FrameworkStream::drain(uint64_t deadline, const bp_cancel_t* cancel) {
  if (!stream_) return {};  // `close` has already waited
  StreamEnd end = work_end(deadline, cancel);
  if (!end.ended) return std::move(end.status);
  runs_->keep(std::move(end.status));
  return {};
}

Status FrameworkStream::export_native(bp_native_t& out) const {
  if (device_->given_up()) return device_->lost();
  if (!api().stream_export) return lacks(*device_, "native handles of streams");
  PluginError error;
  return device_status(*device_, error, api().stream_export(stream_, &out, error.get()));
}

Result<std::shared_ptr<FrameworkSemaphore>> FrameworkSemaphore::create(std::shared_ptr<Environment> environment,
                                                                       Device& device,
                                                                       const bp_semaphore_create_t& how) {
  BP_ASSIGN(bp_device_t * handle, device.open());
  const bp_sync_api_t* api = device.backend().plugin->sync;
  if (!api || !api->semaphore_create || !api->semaphore_destroy) return lacks(device, "semaphores");
  std::shared_ptr<FrameworkSemaphore> semaphore(new FrameworkSemaphore(std::move(environment), device));
  PluginError error;
  BP_TRY(device_status(device, error, api->semaphore_create(handle, &how, &semaphore->semaphore_, error.get())));
  if (!semaphore->semaphore_)
    return Status(BP_INTERNAL, "device '" + device.name() + "': semaphore_create returned no semaphore");
  semaphore->follows_event_ =
      how.native && (how.native->kind == BP_NATIVE_CUDA_EVENT || how.native->kind == BP_NATIVE_CL_EVENT);
  return semaphore;
}

FrameworkSemaphore::~FrameworkSemaphore() {
  if (!semaphore_) return;
  device_->given_up() ? keep_handle(semaphore_) : api().semaphore_destroy(semaphore_);
}

Status FrameworkSemaphore::usable(const void* slot, const char* what) const {
  if (device_->given_up()) return device_->lost();
  return slot ? Status() : lacks(*device_, what);
}

Status FrameworkSemaphore::can_reach(uint64_t value) const {
  if (!follows_event_ || value <= 1) return {};
  return {BP_INVALID_ARGUMENT, "the semaphore was imported from an event and never reaches " + std::to_string(value) +
                                   ": wait for the value 1"};
}

Status FrameworkSemaphore::wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel) const {
  BP_TRY(can_reach(value));
  for (;;) {
    BP_TRY(usable(reinterpret_cast<const void*>(api().semaphore_wait), "waiting for its semaphores on the host"));
    if (cancelled(cancel)) return {BP_CANCELLED, "the run was cancelled while it waited for a native point"};
    const uint64_t until = std::min(deadline, monotonic_now() + (cancel ? kCancelSliceNs : kWaitSliceNs));
    PluginError error;
    const bp_status_t code = api().semaphore_wait(semaphore_, value, until, error.get());
    if (code != BP_TIMED_OUT || until == deadline) return device_status(*device_, error, code);
  }
}

Status FrameworkSemaphore::can_signal() const {
  if (follows_event_) return event_signals_it(*device_);
  return usable(reinterpret_cast<const void*>(api().semaphore_signal), "signaling its semaphores from the host");
}

Status FrameworkSemaphore::signal(uint64_t value) const {
  BP_TRY(can_signal());
  PluginError error;
  return device_status(*device_, error, api().semaphore_signal(semaphore_, value, error.get()));
}

Status FrameworkSemaphore::query(uint64_t& out_value) const {
  BP_TRY(usable(reinterpret_cast<const void*>(api().semaphore_query), "reading the values of its semaphores"));
  PluginError error;
  return device_status(*device_, error, api().semaphore_query(semaphore_, &out_value, error.get()));
}

Status FrameworkSemaphore::export_native(const bp_semaphore_export_t& what, bp_native_t& out) const {
  BP_TRY(usable(reinterpret_cast<const void*>(api().semaphore_export), "native handles of semaphores"));
  PluginError error;
  return device_status(*device_, error, api().semaphore_export(semaphore_, &what, &out, error.get()));
}

// ---- runs -----------------------------------------------------------------------------------------------------------

Status check_run(const bp_run_t& run) {
  if (run.output) return {BP_INVALID_ARGUMENT, "run.output must be NULL: only the loader sets it, for plugins"};
  BP_TRY(abi::check_flags(run.flags, 0, "run.flags"));
  if (run.wait_count == 0 && run.signal_count == 0) return {};
  const auto check = [](const bp_point_t* points, uint32_t count, const char* name) -> Status {
    if (count && !points)
      return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL, but its count is " + std::to_string(count)};
    for (const bp_point_t& point : std::span(points, count)) {
      if (!point.handle || (point.kind != BP_POINT_HOST && point.kind != BP_POINT_NATIVE))
        return {BP_INVALID_ARGUMENT,
                std::string(name) + " accepts only semaphores of bp_semaphore_create and bp_native_semaphore_create"};
      if (point.flags) return abi::check_flags(point.flags, 0, std::string(name) + ".flags");
      const uint64_t owner = point.kind == BP_POINT_NATIVE ? semaphore_of(point).device().id() : 0;
      if (point.device != owner)
        return {BP_INVALID_ARGUMENT, std::string(name) + ".device is " + std::to_string(point.device) +
                                         ", but the semaphore's is " + std::to_string(owner)};
    }
    return {};
  };
  BP_TRY(check(run.waits, run.wait_count, "run.waits"));
  BP_TRY(check(run.signals, run.signal_count, "run.signals"));
  for (const bp_point_t& point : std::span(run.waits, run.wait_count))
    if (point.kind == BP_POINT_NATIVE) BP_TRY(semaphore_of(point).can_reach(point.value));
  for (const bp_point_t& point : std::span(run.signals, run.signal_count)) {
    if (point.kind == BP_POINT_NATIVE && semaphore_of(point).follows_event())
      return event_signals_it(semaphore_of(point).device());
  }
  return {};
}

Status check_reported(const bp_run_t& run) {
  const auto is_host = [](const bp_point_t& point) { return point.kind == BP_POINT_HOST; };
  if (run.done || std::any_of(run.signals, run.signals + run.signal_count, is_host)) return {};
  return {BP_INVALID_ARGUMENT, "nothing would report how the run ends: pass `done` or signal a host semaphore"};
}

Result<DeviceRun> DeviceRun::of(const bp_run_t& order) {
  DeviceRun own;
  own.run_ = order;
  own.run_.size = sizeof own.run_;  // a newer framework's struct is larger than this copy
  if (order.stream) {
    FrameworkStream& stream = *stream_of(order.stream);
    own.device_ = &stream.device();
    own.run_.stream = stream.plugin_stream();
    own.runs_ = &stream.runs();
    // When `stream_wait` or another run reports a failure, the id shows whether this run has failed.
    if (!order.id) own.run_.id = new_run_ids(1);
  }
  BP_TRY(own.take(order.waits, order.wait_count, own.waits_));
  BP_TRY(own.take(order.signals, order.signal_count, own.signals_));
  if (order.stream) {
    const auto is_host = [](const bp_point_t& point) { return point.kind == BP_POINT_HOST; };
    const size_t host_points = std::erase_if(own.signals_, is_host);
    if (order.done || host_points) own.offer_ = stream_of(order.stream)->runs().offer(order, own.run_);
  }
  own.run_.waits = own.waits_.data();
  own.run_.signals = own.signals_.data();
  own.run_.signal_count = static_cast<uint32_t>(own.signals_.size());
  return own;
}

Status DeviceRun::passed(Status status) {
  if (!status.ok()) return status;
  if (runs_) runs_->count_accepted();
  offer_.accept();
  return status;
}

uint64_t new_run_ids(uint64_t count) {
  // From the upper half of the range, because the numbers below 2^63 are those of frameworks.
  static std::atomic<uint64_t> next{kFirstLoaderRun};
  return next.fetch_add(count, std::memory_order_relaxed);
}

Status DeviceRun::take(const bp_point_t* points, uint32_t count, std::vector<bp_point_t>& own) {
  for (uint32_t i = 0; i < count; ++i) {
    bp_point_t point = points[i];
    if (point.kind == BP_POINT_NATIVE) {
      FrameworkSemaphore& semaphore = semaphore_of(point);
      if (!device_) device_ = &semaphore.device();
      if (device_ != &semaphore.device())
        return {BP_INVALID_ARGUMENT, "a point belongs to device '" + semaphore.device().name() +
                                         "', but the run belongs to '" + device_->name() +
                                         "': import the semaphore on the run's device"};
      point = bp_native_point(semaphore.plugin_semaphore(), semaphore.device().id(), point.value);
    }
    own.push_back(point);
  }
  return {};
}

}  // namespace backplane
