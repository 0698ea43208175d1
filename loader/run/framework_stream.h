// SPDX-License-Identifier: Apache-2.0
// Implements bp_stream_t and bp_native_semaphore_t of loader.h: a plugin's object and its device.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "discover/environment.h"
#include "run/lane.h"

namespace backplane {

// All members are thread-safe, except that no other call may run during `close`. Once the device was given up, they
// return BP_DEVICE_LOST and call no function of its plugin; waits that are under way end.
class FrameworkStream {
 public:
  // `how` is a copy. Opens the device.
  static Result<std::shared_ptr<FrameworkStream>> create(std::shared_ptr<Environment> environment, Device& device,
                                                         const bp_stream_create_t& how);
  FrameworkStream(const FrameworkStream&) = delete;
  ~FrameworkStream();

  Device& device() const { return *device_; }
  bp_stream_t* plugin_stream() const { return stream_; }
  // Waits until all work in the stream has ended. Reports failures of runs without `done`, also those kept by `drain`.
  Status wait(uint64_t deadline);
  // Waits likewise, but keeps failures of the work for the next `wait`. BP_TIMED_OUT, BP_CANCELLED or BP_DEVICE_LOST if
  // work may be left.
  Status drain(uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr);
  // Waits likewise. What it reports, no other wait reports, unless it is given to `keep`.
  StreamEnd work_end(uint64_t deadline, const bp_cancel_t* cancel) const;
  // Lets the next `wait` report a failure.
  void keep(Status failure) noexcept;
  Status export_native(bp_native_t& out) const;
  // Waits, unless the device was given up, and destroys the plugin's stream. Execs may keep this object after the
  // framework has destroyed its handle.
  void close() noexcept;

 private:
  FrameworkStream(std::shared_ptr<Environment> environment, Device& device)
      : environment_(std::move(environment)), device_(&device) {}
  const bp_sync_api_t& api() const { return *device_->backend().plugin->sync; }

  std::shared_ptr<Environment> environment_;
  Device* device_;
  bp_stream_t* stream_ = nullptr;
  std::mutex mutex_;
  Status kept_;
};

// Likewise.
class FrameworkSemaphore {
 public:
  static Result<std::shared_ptr<FrameworkSemaphore>> create(std::shared_ptr<Environment> environment, Device& device,
                                                            const bp_semaphore_create_t& how);
  FrameworkSemaphore(const FrameworkSemaphore&) = delete;
  ~FrameworkSemaphore();

  Device& device() const { return *device_; }
  bp_native_semaphore_t* plugin_semaphore() const { return semaphore_; }
  // BP_CANCELLED if `cancel` (may be null) is cancelled before the value is reached.
  Status wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel = nullptr) const;
  Status can_signal() const;  // whether the host can signal it
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
};

// The objects behind the framework's handles.
inline const std::shared_ptr<FrameworkStream>& stream_of(bp_stream_t* handle) {
  return *reinterpret_cast<std::shared_ptr<FrameworkStream>*>(handle);
}
inline FrameworkSemaphore& semaphore_of(const bp_point_t& point) {
  return **reinterpret_cast<std::shared_ptr<FrameworkSemaphore>*>(static_cast<uintptr_t>(point.handle));
}

// Checks the rules that hold for all runs of a framework: known flags and points, and no `output`.
Status check_run(const bp_run_t& run);
// Returns an error unless `done` or a host semaphore reports the end of a run outside a stream.
Status check_reported(const bp_run_t& run);

// `count` consecutive values for bp_run_t.id; returns the first.
uint64_t new_run_ids(uint64_t count);

// A framework's bp_run_t for one device, with the plugin's own stream and semaphores in place of the loader's handles.
class DeviceRun {
 public:
  // `order` outlives the result. BP_INVALID_ARGUMENT if stream and points belong to different devices.
  static Result<DeviceRun> of(const bp_run_t& order);
  const bp_run_t& run() const { return run_; }
  Device* device() const { return device_; }  // null: no stream or point of `order` has a device

 private:
  Status take(const bp_point_t* points, uint32_t count, std::vector<bp_point_t>& own);

  bp_run_t run_{};
  Device* device_ = nullptr;
  std::vector<bp_point_t> waits_, signals_;  // run_ points into them; a move keeps the elements in place
};

}  // namespace backplane
