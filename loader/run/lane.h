// SPDX-License-Identifier: Apache-2.0
// Streams of asynchronous devices: work in one stream runs in order, without the host.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// A stream of a device, which the lane owns.
class Lane {
 public:
  // Whether the device supports streams.
  static bool possible(const Device& device);
  // Opens the device.
  static Result<Lane> make(Device& device);
  Lane(Lane&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  ~Lane();

  Device& device() const { return *device_; }
  bp_stream_t* stream() const { return stream_; }
  // Waits until all work in the stream has ended. Reports failures of runs without `done`.
  bp_status_t wait(PluginError& error) const;

 private:
  explicit Lane(Device& device) : device_(&device) {}

  Device* device_;
  bp_stream_t* stream_ = nullptr;
};

// A semaphore of a lane's device that other lanes can wait for. Its value is the number of the run.
class Mark {
 public:
  explicit Mark(const Lane& lane) : api_(lane.device().backend().plugin->sync) {}
  Mark(const Mark&) = delete;
  ~Mark();

  // Lets lane `to`, which has index `number`, wait for signals of `from`. Does nothing if the devices do not support
  // that: the host waits instead.
  static void share(std::unique_ptr<Mark>& mark, const Lane& from, const Lane& to, uint32_t number);
  bp_native_semaphore_t* own() const { return own_; }
  // The semaphore as imported by the device of lane `lane`, or null.
  bp_native_semaphore_t* of(uint32_t lane) const;

 private:
  struct Copy {
    uint32_t lane;
    const bp_sync_api_t* api;
    bp_native_semaphore_t* semaphore;
  };

  const bp_sync_api_t* api_;
  bp_native_semaphore_t* own_ = nullptr;
  std::vector<Copy> copies_;
};

}  // namespace backplane
