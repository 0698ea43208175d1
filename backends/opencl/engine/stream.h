// SPDX-License-Identifier: Apache-2.0
// Streams and semaphores of a device: command queues in order, and numbers that grow.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "backplane/sdk.hpp"
#include "engine/cl.h"

namespace backplane::opencl {

class Stream final : public sdk::Stream {
 public:
  explicit Stream(Queue queue) : queue_(std::move(queue)) {}
  cl_command_queue queue() const { return queue_.get(); }
  void wait(uint64_t deadline) override;
  bp_native_t native() override;  // the cl_command_queue; it is not retained

 private:
  Queue queue_;
};

// A timeline semaphore. It is kept on the host: a run that failed by its indices or its deadline ended well for the
// device, and an event that tells a failure ends the process in some drivers (decision 0008). Thread-safe.
class Timeline final : public sdk::NativeSemaphore {
 public:
  Timeline() = default;
  // Reaches 1 when the event has ended.
  explicit Timeline(const Event& event);

  void wait(uint64_t value, uint64_t deadline) override;
  // False where the deadline passed first; 0 looks and does not wait. Throws where it failed before it came so far.
  bool reached_by(uint64_t value, uint64_t deadline) const;
  void signal(uint64_t value, bp_status_t status) override;
  uint64_t value() override;

 private:
  // Outlives the semaphore where an event has yet to end.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t value = 0;
    uint64_t good = 0;  // once failed: the value reached before
    bp_status_t failure = BP_OK;
    void signal(uint64_t to, bp_status_t status);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline Timeline& timeline_of(const bp_point_t& point) {
  return *static_cast<Timeline*>(sdk::semaphore_of(point.native));
}

}  // namespace backplane::opencl
