// SPDX-License-Identifier: Apache-2.0
// An event, which is signalled once: by the program, or when a run ends.
#pragma once

#include <atomic>
#include <mutex>

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// The current value of a semaphore, even if that value has failed.
uint64_t reached(const Semaphore& semaphore);

class Event {
 public:
  // Signals the event for the program. Throws INVALID_STATE if it has already been signalled.
  void signal();
  bool is_signalled() const;
  // Waits until the event is signalled. Returns SUCCESS, or the status of the run that failed.
  onnxStatus wait() const;

  // The point of a semaphore that is reached when the event is signalled. It fails if the run failed.
  bp_point_t point() const { return semaphore_.at(1); }
  // Sets the status of the run. Must be called before the run signals the point.
  void set_status(onnxStatus status) { status_.store(status, std::memory_order_release); }
  // Signals the event for a run that cannot be started. `wait` then returns `status`.
  void fail(onnxStatus status);

 private:
  std::mutex mutex_;  // lets only one of several threads signal the event
  Semaphore semaphore_;
  std::atomic<onnxStatus> status_{ONNXIFI_STATUS_SUCCESS};
};

}  // namespace backplane::onnxifi
