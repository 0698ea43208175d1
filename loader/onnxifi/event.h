// SPDX-License-Identifier: Apache-2.0
// An event: happens once, from the program or at the end of a run.
#pragma once

#include <atomic>
#include <mutex>

#include "onnxifi/status.h"

namespace backplane::onnxifi {

// The value of a semaphore, whether it was reached by success or failure.
uint64_t reached(const Semaphore& semaphore);

class Event {
 public:
  // Signals it, for the program. Throws INVALID_STATE if it is signalled already.
  void signal();
  bool is_signalled() const;
  // SUCCESS, or why the run failed.
  onnxStatus wait() const;

  // Reached when it is signalled; of a run it carries the run's failure.
  bp_point_t point() const { return semaphore_.at(1); }
  // Sets the status of the run, before its point is reached.
  void set_status(onnxStatus status) { status_.store(status, std::memory_order_release); }

 private:
  std::mutex mutex_;  // for two threads that signal
  Semaphore semaphore_;
  std::atomic<onnxStatus> status_{ONNXIFI_STATUS_SUCCESS};
};

}  // namespace backplane::onnxifi
