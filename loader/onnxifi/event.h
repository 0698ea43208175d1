// SPDX-License-Identifier: Apache-2.0
// An event: signalled once, by the program or at the end of a run.
#pragma once

#include <atomic>
#include <mutex>

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// The value of a semaphore, whether it was reached by success or failure.
uint64_t reached(const Semaphore& semaphore);

class Event {
 public:
  // Signals the event for the program. Throws INVALID_STATE if it is signalled already.
  void signal();
  bool is_signalled() const;
  // Waits until it is signalled. SUCCESS, or why the run failed.
  onnxStatus wait() const;

  // Reached when signalled; carries the run's failure if the run failed.
  bp_point_t point() const { return semaphore_.at(1); }
  // Sets the run's status, before the run's point is reached.
  void set_status(onnxStatus status) { status_.store(status, std::memory_order_release); }

 private:
  std::mutex mutex_;  // for two threads that signal at one time
  Semaphore semaphore_;
  std::atomic<onnxStatus> status_{ONNXIFI_STATUS_SUCCESS};
};

}  // namespace backplane::onnxifi
