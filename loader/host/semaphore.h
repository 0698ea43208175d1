// SPDX-License-Identifier: Apache-2.0
// What bp_semaphore_t is: a 64-bit number that only grows, and threads that wait for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "backplane/host.h"

// All members are thread-safe.
struct bp_semaphore_t {
 public:
  explicit bp_semaphore_t(uint64_t value = 0) : value_(value) {}

  // Sets it to `value` if that is more. A `status` other than BP_OK marks it failed for good (the first failure stays),
  // and every waiter is woken.
  void signal(uint64_t value, bp_status_t status = BP_OK);
  // BP_OK once the value was reached without failure; BP_DEPENDENCY_FAILED, BP_CANCELLED or BP_TIMED_OUT otherwise.
  // What was reached before a failure stays reached. `deadline` in ns on the monotonic clock, BP_FOREVER for none.
  bp_status_t wait(uint64_t value, uint64_t deadline = BP_FOREVER, const bp_cancel_t* cancel = nullptr);
  // Its value now, and BP_OK or why it failed.
  bp_status_t query(uint64_t* out_value) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_;
  uint64_t good_ = 0;  // once failed: the value reached before
  bp_status_t failure_ = BP_OK;
};
