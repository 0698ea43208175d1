// SPDX-License-Identifier: Apache-2.0
// A lane is a stream of an asynchronous device: its work runs in order without the host. A mark is a semaphore by which
// lanes wait for each other. Once a device is abandoned, nothing here calls its plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backplane/host.h"
#include "base/status.h"
#include "discover/environment.h"

namespace backplane {

// The longest wait inside a plugin, in nanoseconds. The caller then checks whether the device was abandoned.
constexpr uint64_t kWaitSliceNs = 50'000'000;
// The same for a caller that may be cancelled, because a plugin's wait does not end when the token is set.
constexpr uint64_t kCancelSliceNs = 2'000'000;

// The result of waiting for the work of a stream.
struct StreamEnd {
  bool ended = false;  // false: some work may not have ended; `status` is BP_TIMED_OUT, BP_CANCELLED or BP_DEVICE_LOST
  Status status;
  uint64_t run = 0;  // bp_run_t.id of the work that failed; 0: unknown
};

// Waits until all work in the stream has ended, the deadline has passed, `cancel` (may be null) is set, or the device
// is abandoned.
StreamEnd wait_for_work(const Device& device, bp_stream_t* stream, uint64_t deadline = BP_FOREVER,
                        const bp_cancel_t* cancel = nullptr);

// Owns a stream of an asynchronous device.
class Lane {
 public:
  static bool possible(const Device& device);
  // Opens the device.
  static Result<Lane> make(Device& device);
  Lane(Lane&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  Lane& operator=(Lane&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Lane();

  Device& device() const { return *device_; }
  bp_stream_t* stream() const { return stream_; }
  // Waits until all work in the stream has ended or the device is abandoned. Returns the failure of a run without
  // `done`.
  StreamEnd wait() const { return wait_for_work(*device_, stream_); }
  // Calls `start(run)`, which puts work into the stream, and waits for it as wait_for_work does.
  template <class Start>
  StreamEnd complete(const Start& start, uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr) const {
    bp_run_t run{};
    run.size = sizeof run;
    run.stream = stream_;
    if (Status status = start(&run); !status.ok()) return {true, std::move(status), 0};
    return wait_for_work(*device_, stream_, deadline, cancel);
  }

 private:
  explicit Lane(Device& device) : device_(&device) {}

  Device* device_;
  bp_stream_t* stream_ = nullptr;
};

// Lanes for calls that put work into a stream and wait for it, such as a copy without a run. Each call in progress has
// its own lane, because a stream reports a failure only to the first call that waits for it. Lanes are kept for
// later calls. Thread-safe.
class SpareLanes {
 public:
  // Opens the device.
  Result<Lane> take(Device& device);
  // Takes back a lane without work in its stream.
  void give(Lane lane);

 private:
  std::mutex mutex_;
  std::vector<Lane> lanes_;
};

// A semaphore of a lane's device for which other lanes can wait. Later runs signal it with larger values.
class Mark {
 public:
  explicit Mark(const Lane& lane) : device_(&lane.device()) {}
  Mark(const Mark&) = delete;
  ~Mark();

  // Imports the semaphore of `from` on the device of lane `to`, which has index `number`, so that `to` can wait for it.
  // Creates `mark` if it is null. If the devices do not support that, `mark` does not change, and the host waits
  // instead.
  static void share(std::unique_ptr<Mark>& mark, const Lane& from, const Lane& to, uint32_t number);
  bp_native_semaphore_t* own() const { return own_; }
  // The semaphore as imported by the device of the lane with this index; null: not imported.
  bp_native_semaphore_t* of(uint32_t lane) const;

 private:
  struct Copy {
    uint32_t lane;
    const Device* device;
    bp_native_semaphore_t* semaphore;
  };

  const Device* device_;
  bp_native_semaphore_t* own_ = nullptr;
  std::vector<Copy> copies_;
};

}  // namespace backplane
