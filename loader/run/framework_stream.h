// SPDX-License-Identifier: Apache-2.0
// What a bp_stream_t and a bp_native_semaphore_t of loader.h are: those of a plugin, and the device that they are of.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// All members are thread-safe, but `close` wants to be alone.
class FrameworkStream {
 public:
  // `how` is a copy. Opens the device.
  static Result<std::shared_ptr<FrameworkStream>> create(std::shared_ptr<Environment> environment, Device& device,
                                                         const bp_stream_create_t& how);
  FrameworkStream(const FrameworkStream&) = delete;
  ~FrameworkStream();

  Device& device() const { return *device_; }
  bp_stream_t* plugin_stream() const { return stream_; }
  // Until all work in it has ended. Reports what work without `done` failed with, also what `settle` met.
  Status wait(uint64_t deadline);
  // The same for the loader's own needs: a failure is kept for `wait`.
  void settle() noexcept;
  Status export_native(bp_native_t& out) const;
  // Waits, and ends the plugin's stream: an exec may keep this for longer than the framework keeps its own.
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

class FrameworkSemaphore {
 public:
  static Result<std::shared_ptr<FrameworkSemaphore>> create(std::shared_ptr<Environment> environment, Device& device,
                                                            const bp_semaphore_create_t& how);
  FrameworkSemaphore(const FrameworkSemaphore&) = delete;
  ~FrameworkSemaphore();

  Device& device() const { return *device_; }
  bp_native_semaphore_t* plugin_semaphore() const { return semaphore_; }
  Status wait(uint64_t value, uint64_t deadline) const;
  Status can_signal() const;  // from the host
  Status signal(uint64_t value) const;
  Status query(uint64_t& out_value) const;
  Status export_native(uint64_t value, bp_native_t& out) const;

 private:
  FrameworkSemaphore(std::shared_ptr<Environment> environment, Device& device)
      : environment_(std::move(environment)), device_(&device) {}
  const bp_sync_api_t& api() const { return *device_->backend().plugin->sync; }

  std::shared_ptr<Environment> environment_;
  Device* device_;
  bp_native_semaphore_t* semaphore_ = nullptr;
};

// The objects behind the handles that the framework has.
inline const std::shared_ptr<FrameworkStream>& stream_of(bp_stream_t* handle) {
  return *reinterpret_cast<std::shared_ptr<FrameworkStream>*>(handle);
}
inline FrameworkSemaphore& semaphore_of(const bp_point_t& point) {
  return **reinterpret_cast<std::shared_ptr<FrameworkSemaphore>*>(static_cast<uintptr_t>(point.handle));
}

// The order that a framework asks of one device, as its plugin knows it: stream and native points are the plugin's own.
class DeviceOrder {
 public:
  // `order` outlives this. BP_INVALID_ARGUMENT where stream and points are of different devices.
  static Result<DeviceOrder> of(const bp_run_t& order);
  const bp_run_t& run() const { return run_; }
  Device* device() const { return device_; }  // null: the order names none

 private:
  Status take(const bp_point_t* points, uint32_t count, std::vector<bp_point_t>& own);

  bp_run_t run_{};
  Device* device_ = nullptr;
  std::vector<bp_point_t> waits_, signals_;  // moved with it: where they lie does not change
};

}  // namespace backplane
