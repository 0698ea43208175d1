// SPDX-License-Identifier: Apache-2.0
// Implements bp_stream_t and bp_native_semaphore_t of loader.h. Each class wraps one object of a plugin and its device.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "discover/environment.h"
#include "run/lane.h"
#include "run/run_end.h"

namespace backplane {

// A stream that the framework created. Thread-safe, except that no other call may run during `close`. Once the device
// is abandoned, members return BP_DEVICE_LOST without calling the plugin, and waits in progress end.
class FrameworkStream {
 public:
  // Copies `how`. Opens the device.
  static Result<std::shared_ptr<FrameworkStream>> create(std::shared_ptr<Environment> environment, Device& device,
                                                         const bp_stream_create_t& how);
  FrameworkStream(const FrameworkStream&) = delete;
  ~FrameworkStream();

  Device& device() const { return *device_; }
  bp_stream_t* plugin_stream() const { return stream_; }
  // Waits until all work in the stream has ended. Returns the first failure that no `done` has reported, including one
  // kept by `drain`. BP_TIMED_OUT without BP_ERROR_OF_RUN: the deadline passed, and some work may not have ended.
  // BP_DEVICE_LOST with BP_ERROR_ABANDONED: the device was abandoned with work in the stream.
  Status wait(uint64_t deadline);
  // Waits like `wait`, but keeps the first failure of the work for the next `wait` or `done` of a run. Returns
  // BP_TIMED_OUT, BP_CANCELLED or BP_DEVICE_LOST if some work may not have ended.
  Status drain(uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr);
  // Waits like `wait`. A failure in the result is reported by no other wait, unless the caller passes the failure to
  // runs().keep.
  StreamEnd work_end(uint64_t deadline, const bp_cancel_t* cancel) const;
  // The stream's runs, and the failure that the framework has not seen yet.
  StreamRuns& runs() const { return *runs_; }
  Status export_native(bp_native_t& out) const;
  // Waits for the stream's work and destroys the plugin's stream. Does neither if the device was abandoned. A separate
  // call, because execs may hold this object longer than the framework holds its handle.
  void close() noexcept;

 private:
  FrameworkStream(std::shared_ptr<Environment> environment, Device& device);
  const bp_sync_api_t& api() const { return *device_->backend().plugin->sync; }

  std::shared_ptr<Environment> environment_;
  Device* device_;
  bp_stream_t* stream_ = nullptr;
  std::shared_ptr<StreamRuns> runs_;
};

// A native semaphore that the framework created. Thread-safe. Once the device is abandoned, members return
// BP_DEVICE_LOST instead of calling the plugin.
class FrameworkSemaphore {
 public:
  static Result<std::shared_ptr<FrameworkSemaphore>> create(std::shared_ptr<Environment> environment, Device& device,
                                                            const bp_semaphore_create_t& how);
  FrameworkSemaphore(const FrameworkSemaphore&) = delete;
  ~FrameworkSemaphore();

  Device& device() const { return *device_; }
  bp_native_semaphore_t* plugin_semaphore() const { return semaphore_; }
  // Waits until the semaphore reaches the value. BP_TIMED_OUT: the deadline passed. BP_CANCELLED: `cancel` (may be
  // null) was set. BP_INVALID_ARGUMENT: the semaphore can never reach the value (see can_reach).
  Status wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel = nullptr) const;
  bool follows_event() const { return follows_event_; }  // imported from a CUDA or OpenCL event, which alone signals it
  Status can_reach(uint64_t value) const;  // returns an error if the semaphore follows an event and `value` exceeds 1
  Status can_signal() const;               // returns an error if the host cannot signal the semaphore
  Status signal(uint64_t value) const;
  Status query(uint64_t& out_value) const;
  Status export_native(const bp_semaphore_export_t& what, bp_native_t& out) const;

 private:
  FrameworkSemaphore(std::shared_ptr<Environment> environment, Device& device)
      : environment_(std::move(environment)), device_(&device) {}
  const bp_sync_api_t& api() const { return *device_->backend().plugin->sync; }
  Status usable(const void* slot, const char* what) const;

  std::shared_ptr<Environment> environment_;
  Device* device_;
  bp_native_semaphore_t* semaphore_ = nullptr;
  bool follows_event_ = false;
};

// The objects to which the framework's handles point. A handle of a forked child's parent has another generation.
struct StreamHandle {
  std::shared_ptr<FrameworkStream> object;
  uint32_t generation;  // c_api::generation() (c_api/fork.h) when the handle was created
};
struct SemaphoreHandle {
  std::shared_ptr<FrameworkSemaphore> object;
  uint32_t generation;
};
inline const std::shared_ptr<FrameworkStream>& stream_of(bp_stream_t* handle) {
  return reinterpret_cast<StreamHandle*>(handle)->object;
}
inline FrameworkSemaphore& semaphore_of(const bp_point_t& point) {
  return *reinterpret_cast<SemaphoreHandle*>(static_cast<uintptr_t>(point.handle))->object;
}

// Checks the rules for every bp_run_t of a framework: `output` is null, no flags are unknown, each point names a
// semaphore of the loader and that semaphore's device, waits can be reached, and no signal names a semaphore that was
// imported from an event.
Status check_run(const bp_run_t& run);
// Returns an error if neither `done` nor a host semaphore would report the end of a run that is not in a stream.
Status check_reported(const bp_run_t& run);

// Reserves `count` consecutive values for bp_run_t.id; returns the first.
uint64_t new_run_ids(uint64_t count);

// A copy of a framework's bp_run_t for one device. The plugin's own stream and semaphores replace the loader's handles.
class DeviceRun {
 public:
  // `order` must outlive the result. BP_INVALID_ARGUMENT if the stream and points of `order` are of different devices.
  static Result<DeviceRun> of(const bp_run_t& order);
  const bp_run_t& run() const { return run_; }
  // Must be called with the status that the plugin returned for `run()`. Returns that status. After BP_OK the plugin
  // has accepted the run: the plugin ends it, or StreamRuns does once the device is abandoned.
  Status passed(Status status);
  Device* device() const { return device_; }  // null: `order` has no stream and no native point

 private:
  Status take(const bp_point_t* points, uint32_t count, std::vector<bp_point_t>& own);

  bp_run_t run_{};
  Device* device_ = nullptr;
  StreamRuns* runs_ = nullptr;  // those of the stream of `order`; null: no stream
  // run_ points to the elements, which stay in place when this object is moved.
  std::vector<bp_point_t> waits_, signals_;
  StreamRuns::Offer offer_;
};

}  // namespace backplane
